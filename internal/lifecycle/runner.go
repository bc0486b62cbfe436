package lifecycle

import (
	"context"
	"errors"
	"sync"
	"time"
)

// runner is one component within its group.
type runner struct {
	component  Component
	group      *Group
	index      int
	needs      []*runner
	dependents []*runner

	readyOnce sync.Once
	ready     chan struct{} // closed when it was ready for the first time
	mayStop   chan struct{} // closed when the group stops and no dependent is left
	stopped   chan struct{} // closed when it will not run any more

	failOnce sync.Once
	failed   chan struct{} // closed when it has failed for good
}

func newRunner(group *Group, index int, component Component) *runner {
	return &runner{
		component: component,
		group:     group,
		index:     index,
		ready:     make(chan struct{}),
		mayStop:   make(chan struct{}),
		stopped:   make(chan struct{}),
		failed:    make(chan struct{}),
	}
}

// awaitDependents closes mayStop when the group stops and everything that
// needs this component has stopped: a server must outlive its clients.
func (r *runner) awaitDependents() {
	<-r.group.stopping
	for _, dependent := range r.dependents {
		<-dependent.stopped
	}
	close(r.mayStop)
}

// run waits for the needs, then calls the component's Run until it is not to
// be called again.
func (r *runner) run(ctx context.Context) {
	defer close(r.stopped)
	for _, need := range r.needs {
		select {
		case <-need.ready:
		case <-r.group.stopping:
			r.set(Stopped)
			return
		}
	}
	firstStart := time.Now()
	pause := r.group.options.MinBackoff
	var lastErr error
	for attempt := 0; !r.group.isStopping(); attempt++ {
		if attempt > 0 {
			r.group.update(r.index, func(s *Status) { s.Restarts++ })
		}
		result := r.attempt(ctx, firstStart, lastErr)
		lastErr = result.err
		if result.asked || r.group.isStopping() {
			r.finish(result)
			return
		}
		if !r.mayRestart(result, firstStart) {
			r.fail(r.startError(result.err))
			r.group.stop()
			return
		}
		if result.readyFor >= r.group.options.ResetAfter {
			pause = r.group.options.MinBackoff
		}
		r.group.update(r.index, func(s *Status) { s.State, s.LastError = BackingOff, result.err.Error() })
		select {
		case <-time.After(pause):
		case <-r.group.stopping:
		}
		pause = min(2*pause, r.group.options.MaxBackoff)
	}
	r.set(Stopped)
}

// mayRestart says whether Run may be called again. One that was left behind
// never is: it may still hold what a second one needs. One that has never been
// ready has its StartTimeout over all attempts, so that a start that cannot
// succeed ends with an error instead of trying for ever.
func (r *runner) mayRestart(result outcome, firstStart time.Time) bool {
	if !r.component.Restart || result.leftBehind {
		return false
	}
	limit := r.component.StartTimeout
	return r.wasReady() || limit == 0 || time.Since(firstStart) < limit
}

// startError adds the limit to the error of a component that was tried again
// and again until its start limit had passed.
func (r *runner) startError(err error) error {
	var timeout *TimeoutError
	if !r.component.Restart || r.wasReady() || errors.As(err, &timeout) {
		return err
	}
	return &TimeoutError{What: "not ready", Limit: r.component.StartTimeout, Last: err}
}

// outcome is how one call of Run ended.
type outcome struct {
	err        error         // nil only when asked to stop
	asked      bool          // the group asked it to stop
	leftBehind bool          // Run has not returned
	readyFor   time.Duration // how long it was ready
}

// attempt calls Run once and returns when it returned, or was left behind.
// lastErr is how the attempt before it ended.
func (r *runner) attempt(parent context.Context, firstStart time.Time, lastErr error) outcome {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	r.set(Starting)
	ready, done := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go r.component.call(func() error {
		return r.component.Run(ctx, func() { once.Do(func() { close(ready) }) })
	}, done)

	limit, stopLimit := r.startLimit(firstStart)
	defer stopLimit()
	var readySince time.Time
	becomeReady := func() {
		ready, limit = nil, nil
		readySince = time.Now()
		r.set(Ready)
		r.readyOnce.Do(func() { close(r.ready) })
	}
	readyFor := func() time.Duration {
		if readySince.IsZero() {
			return 0
		}
		return time.Since(readySince)
	}
	for {
		select {
		case <-ready:
			becomeReady()
		case <-limit:
			cancel()
			result := r.awaitReturn(done)
			if result.err == nil {
				result.err = lastErr
			}
			result.err = &TimeoutError{What: "not ready", Limit: r.component.StartTimeout, Last: result.err}
			return result
		case err := <-done:
			select {
			case <-ready: // both at once: it was ready before it ended
				becomeReady()
			default:
			}
			if err == nil {
				err = ErrEnded
			}
			return outcome{err: err, readyFor: readyFor()}
		case <-r.mayStop:
			r.set(Stopping)
			cancel()
			result := r.awaitReturn(done)
			result.asked = true
			return result
		}
	}
}

// startLimit is a channel that fires when the component should have been
// ready: counted over all attempts until it was ready once, per attempt later.
func (r *runner) startLimit(firstStart time.Time) (limit <-chan time.Time, stop func()) {
	total := r.component.StartTimeout
	if total == 0 {
		return nil, func() {}
	}
	if !r.wasReady() {
		total -= time.Since(firstStart)
	}
	timer := time.NewTimer(total)
	return timer.C, func() { timer.Stop() }
}

// awaitReturn waits for a Run whose context has ended.
func (r *runner) awaitReturn(done <-chan error) outcome {
	stopTimeout := r.stopTimeout()
	var limit <-chan time.Time
	if stopTimeout > 0 {
		timer := time.NewTimer(stopTimeout)
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case err := <-done:
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return outcome{err: err}
	case <-limit:
		return outcome{
			err:        &TimeoutError{What: "not stopped", Limit: stopTimeout},
			leftBehind: true,
		}
	}
}

// stopTimeout is the component's own, or a shorter one if something that it
// needs has failed: an API server whose store is gone waits for it in vain.
func (r *runner) stopTimeout() time.Duration {
	own, orphaned := r.component.StopTimeout, r.group.options.OrphanStopTimeout
	for _, need := range r.needs {
		select {
		case <-need.failed:
			if own == 0 || orphaned < own {
				return orphaned
			}
		default:
		}
	}
	return own
}

func (r *runner) wasReady() bool {
	select {
	case <-r.ready:
		return true
	default:
		return false
	}
}

func (r *runner) set(state State) { r.group.update(r.index, func(s *Status) { s.State = state }) }

// finish ends a component of a group that stops. One that ended a moment
// before it would have been asked to has done no wrong.
func (r *runner) finish(result outcome) {
	if result.err != nil && (result.asked || result.err != ErrEnded) {
		r.fail(result.err)
		return
	}
	r.group.update(r.index, func(s *Status) {
		if s.State != Failed {
			s.State = Stopped
		}
	})
}

// fail records the component's error for the group's Run to return.
func (r *runner) fail(err error) {
	r.failOnce.Do(func() { close(r.failed) })
	r.group.record(&Error{Component: r.component.Name, LogFile: r.component.LogFile, Err: err})
	r.group.update(r.index, func(s *Status) { s.State, s.LastError = Failed, err.Error() })
}
