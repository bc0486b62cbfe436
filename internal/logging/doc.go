// Package logging writes one bounded log file a component and reads them back.
//
// Every line of every file begins with the time at which it was written
// (RFC 3339, UTC, milliseconds) and a space, whatever logger it came from, so
// that the files can be merged and cut by time. The supervisor opens a Logs
// and hands its writers and loggers to the components; nothing in here writes
// to standard error and no logger stands in a package variable.
package logging
