package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Component is one part of the program. It is a value; the zero value of every
// optional field is usable.
type Component struct {
	// Name is unique within a group.
	Name string
	// Needs are names of components that must be ready before this one
	// starts. This one is stopped before any of them is.
	Needs []string
	// StartTimeout is how long it may take from the start of Run to the call
	// of ready; the error names this limit. 0 means no limit.
	StartTimeout time.Duration
	// StopTimeout is how long Run may take to return after its context
	// ended. A Run that takes longer is left behind and reported. 0 means no
	// limit.
	StopTimeout time.Duration
	// Restart says whether a Run that returned or panicked is started again,
	// with back-off. Without it, a Run that returns before it was asked to
	// stops the whole group in order.
	Restart bool
	// Run starts the part, calls ready once when it has checked that it
	// really answers, blocks until ctx ends, releases everything that it
	// opened and returns nil after a clean stop. The group waits for it.
	Run func(ctx context.Context, ready func()) error

	// LogFile is the path that errors point people to; it may be empty.
	LogFile string
	// Log receives the stack of a panic; nil discards it. The group does not
	// close it.
	Log io.Writer
}

// validate refuses sets that could never start: double names, unknown needs,
// needs in a circle.
func validate(components []Component) error {
	byName := make(map[string]Component, len(components))
	for _, component := range components {
		if component.Name == "" || component.Run == nil {
			return fmt.Errorf("component %q: it needs a name and a Run function", component.Name)
		}
		if _, taken := byName[component.Name]; taken {
			return fmt.Errorf("component %q is declared twice", component.Name)
		}
		byName[component.Name] = component
	}
	for _, component := range components {
		for _, need := range component.Needs {
			if _, known := byName[need]; !known {
				return fmt.Errorf("component %q needs %q, which is not declared", component.Name, need)
			}
		}
	}
	return refuseCircle(components)
}

// refuseCircle removes components whose needs are all removed already until
// nothing is left; what cannot be removed stands in a circle.
func refuseCircle(components []Component) error {
	var startable []string
	left := slices.Clone(components)
	for len(left) > 0 {
		rest := slices.DeleteFunc(slices.Clone(left), func(component Component) bool {
			return !slices.ContainsFunc(component.Needs, func(need string) bool {
				return !slices.Contains(startable, need)
			})
		})
		if len(rest) == len(left) {
			var errs []error
			for _, component := range rest {
				errs = append(errs, fmt.Errorf("component %q needs %v: the needs form a circle", component.Name, component.Needs))
			}
			return errors.Join(errs...)
		}
		for _, component := range left {
			if !slices.ContainsFunc(rest, func(c Component) bool { return c.Name == component.Name }) {
				startable = append(startable, component.Name)
			}
		}
		left = rest
	}
	return nil
}
