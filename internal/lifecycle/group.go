package lifecycle

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Options tune a Group. The zero value has the defaults that each field names.
type Options struct {
	// MinBackoff is the pause before the first restart; it doubles with each
	// further one. Default 250 ms.
	MinBackoff time.Duration
	// MaxBackoff bounds the pause. Default 10 s.
	MaxBackoff time.Duration
	// ResetAfter is how long a component has to stay ready until its pause
	// starts from MinBackoff again. Default 1 minute.
	ResetAfter time.Duration
	// OrphanStopTimeout bounds the StopTimeout of a component that needs one
	// that has failed. Default 3 s.
	OrphanStopTimeout time.Duration
	// OnChange is told of every change of state, in order, one at a time. It
	// must not block and must not call the group. Default: nobody is told.
	OnChange func(Status)
}

func (o Options) withDefaults() Options {
	if o.MinBackoff == 0 {
		o.MinBackoff = 250 * time.Millisecond
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = 10 * time.Second
	}
	if o.ResetAfter == 0 {
		o.ResetAfter = time.Minute
	}
	if o.OrphanStopTimeout == 0 {
		o.OrphanStopTimeout = 3 * time.Second
	}
	if o.OnChange == nil {
		o.OnChange = func(Status) {}
	}
	return o
}

// Group is a set of components that live and end together. It runs once.
type Group struct {
	options Options
	runners []*runner

	stopOnce sync.Once
	stopping chan struct{} // closed when the group begins to stop

	mu       sync.Mutex // guards what follows
	statuses []Status   // same index as runners
	errs     []error
}

// New checks the components and prepares them. Nothing starts before Run.
func New(components []Component, options Options) (*Group, error) {
	if err := validate(components); err != nil {
		return nil, err
	}
	g := &Group{options: options.withDefaults(), stopping: make(chan struct{})}
	for i, component := range components {
		g.runners = append(g.runners, newRunner(g, i, component))
		g.statuses = append(g.statuses, Status{Name: component.Name, State: Waiting, Since: time.Now(), LogFile: component.LogFile})
	}
	for _, r := range g.runners {
		for _, need := range r.component.Needs {
			needed := g.find(need)
			r.needs = append(r.needs, needed)
			needed.dependents = append(needed.dependents, r)
		}
	}
	return g, nil
}

// Run starts every component, calls ready once when all of them have been
// ready, and blocks until ctx ends or a component fails for good. Then it
// stops them in the reverse order and returns their errors, joined, the cause
// first; each is an *Error. A stop because ctx ended is not an error.
//
// The components do not see the end of ctx itself: each one's context ends
// when everything that needs it has stopped. Values of ctx are passed on.
func (g *Group) Run(ctx context.Context, ready func()) error {
	var running sync.WaitGroup
	for _, r := range g.runners {
		running.Go(func() { r.awaitDependents() })
		running.Go(func() { r.run(context.WithoutCancel(ctx)) })
	}
	running.Go(func() {
		if g.awaitReady() {
			ready()
		}
	})
	select {
	case <-ctx.Done():
	case <-g.stopping:
	}
	g.stop()
	running.Wait()

	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.errs...)
}

// Fail reports that the named component can't go on, from outside its Run: a
// fatal exit that was caught in one of its goroutines. The name is "" when no
// component is to blame. The group stops in
// order and returns err. Safe to call at any time, from any goroutine.
func (g *Group) Fail(component string, err error) {
	r := g.find(component)
	if r == nil {
		g.record(&Error{Component: component, Err: err})
	} else {
		r.fail(err)
	}
	g.stop()
}

// Stopping is closed when the group begins to stop, for whatever reason.
func (g *Group) Stopping() <-chan struct{} { return g.stopping }

// Snapshot is the state of every component, in the order of New.
func (g *Group) Snapshot() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.statuses)
}

func (g *Group) find(name string) *runner {
	for _, r := range g.runners {
		if r.component.Name == name {
			return r
		}
	}
	return nil
}

// awaitReady reports whether every component became ready before the group
// began to stop.
func (g *Group) awaitReady() bool {
	for _, r := range g.runners {
		select {
		case <-r.ready:
		case <-g.stopping:
			return false
		}
	}
	return !g.isStopping()
}

func (g *Group) stop() { g.stopOnce.Do(func() { close(g.stopping) }) }

func (g *Group) isStopping() bool {
	select {
	case <-g.stopping:
		return true
	default:
		return false
	}
}

func (g *Group) record(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.errs = append(g.errs, err)
}

// update changes one status under the lock and tells OnChange.
func (g *Group) update(index int, change func(*Status)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	status := &g.statuses[index]
	before := status.State
	change(status)
	if status.State != before {
		status.Since = time.Now()
	}
	g.options.OnChange(*status)
}
