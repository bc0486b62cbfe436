package cli

import (
	"errors"
	"fmt"
)

// The exit codes of the program's contract.
const (
	codeOK           = 0
	codeFailure      = 1
	codeUsage        = 2
	codeNotRunning   = 3
	codeNotReady     = 4   // status: starting, degraded or stopping
	codeAppliance    = 125 // ci: the appliance failed, not the command
	codeCannotRun    = 126 // ci: the command could not be executed
	codeNotFound     = 127 // ci: there is no such command
	codeSignalOffset = 128 // plus the signal's number
)

// exitError carries an exit code. Without an err nothing is printed: the
// command has said all there is to say.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError is wrong usage of the command line.
func usageError(format string, args ...any) error {
	return &exitError{codeUsage, fmt.Errorf(format, args...)}
}

// exitCode is the code that an error ends the program with, 1 unless it says
// otherwise.
func exitCode(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return codeOK
	case errors.As(err, &exit):
		return exit.code
	default:
		return codeFailure
	}
}

// silent says that the error was told already.
func silent(err error) bool {
	var exit *exitError
	return errors.As(err, &exit) && exit.err == nil
}
