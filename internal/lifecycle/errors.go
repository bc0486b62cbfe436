package lifecycle

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Error is what a group reports about one component.
type Error struct {
	// Component is the name of the component to blame; "" if it is none.
	Component string
	// LogFile is its log file; it may be empty.
	LogFile string
	// Err is the reason.
	Err error
}

func (e *Error) Error() string {
	if e.Component == "" {
		return e.Err.Error()
	}
	if e.LogFile == "" {
		return fmt.Sprintf("%s: %v", e.Component, e.Err)
	}
	return fmt.Sprintf("%s: %v (log: %s)", e.Component, e.Err, e.LogFile)
}

func (e *Error) Unwrap() error { return e.Err }

// ErrEnded is the reason when a Run returned nil without having been asked to.
var ErrEnded = errors.New("it ended without being asked to")

// TimeoutError is the reason when a component kept a time limit waiting.
type TimeoutError struct {
	// What is "not ready" or "not stopped".
	What string
	// Limit is the limit that passed.
	Limit time.Duration
	// Last is the newest error of an attempt to start within the limit, nil
	// if there was none.
	Last error
}

func (e *TimeoutError) Error() string {
	text := fmt.Sprintf("%s within its limit of %s", e.What, e.Limit)
	if e.Last != nil {
		text += ": " + e.Last.Error()
	}
	return text
}

func (e *TimeoutError) Unwrap() error { return e.Last }

// panicError is a recovered panic of a Run.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("it panicked: %v", e.value) }

// call runs the component once and sends how it ended on done, which must have
// room. A panic and a runtime.Goexit, which is how a caught fatal exit ends its
// goroutine, become errors. A stack goes to the component's log only: people
// get one line.
func (c *Component) call(run func() error, done chan<- error) {
	err := errors.New("its goroutine was ended from inside")
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value}
			if c.Log != nil {
				fmt.Fprintf(c.Log, "panic: %v\n%s\n", value, debug.Stack())
			}
		}
		done <- err
	}()
	err = run()
}
