// Package cli tests the program's command line by running the real binary, as
// people and scripts do: exit codes, output, processes, folders, crashes.
//
// Each test has a home folder of its own, so that it can neither see nor leave
// anything outside, and checks at its end that no process and no socket is left.
package cli
