// Package cli is the command line of taskctl: flags, output and exit codes,
// one file a command. It does not know how a component works: it runs an
// appliance (internal/supervisor) or asks a running one (internal/control).
//
// Data goes to standard output, messages for people go to standard error.
// Main is the only entry; it ends no process, it returns the exit code.
package cli
