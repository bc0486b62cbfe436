// Package lifecycle starts a set of components in dependency order, side by
// side where their needs allow it, restarts those that may be restarted, and
// stops them in the reverse order.
//
// The supervisor uses it for the parts of an appliance. The package does not
// know what a component is or does: it sees names, time limits and one Run
// function each. It installs no signal handler, ends no process and writes
// nothing except the stack of a recovered panic, into the log that the
// component itself names.
package lifecycle
