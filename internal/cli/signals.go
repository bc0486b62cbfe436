package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"
)

// signals is the one signal handler of the program.
//
// The first SIGINT, SIGTERM or SIGHUP ends the context, with a signalError as
// its cause; the command then stops in order. The second one of SIGINT and
// SIGTERM makes Main return at once.
type signals struct {
	forced chan os.Signal // receives the signal that ends the program at once
	done   chan struct{}
	wait   sync.WaitGroup
	raw    chan os.Signal

	mu        sync.Mutex
	immediate bool            // the first signal is the second one already
	forward   func(os.Signal) // gets every signal instead of the context
	first     os.Signal       // the first one that ended the context
	cancel    context.CancelCauseFunc
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return fmt.Sprintf("stopped by %s", e.signal) }

func (e *signalError) code() int { return codeSignalOffset + int(e.signal) }

// handleSignals begins to handle signals; stop ends it.
func handleSignals(parent context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancelCause(parent)
	s := &signals{
		forced: make(chan os.Signal, 1),
		done:   make(chan struct{}),
		raw:    make(chan os.Signal, 4),
		cancel: cancel,
	}
	signal.Notify(s.raw, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	s.wait.Go(s.run)
	return ctx, s
}

func (s *signals) stop() {
	signal.Stop(s.raw)
	close(s.done)
	s.wait.Wait()
	s.cancel(nil)
}

func (s *signals) run() {
	for {
		select {
		case <-s.done:
			return
		case received := <-s.raw:
			s.handle(received)
		}
	}
}

func (s *signals) handle(received os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.forward != nil:
		s.forward(received)
	case s.immediate, s.first != nil && received != syscall.SIGHUP:
		select {
		case s.forced <- received:
		default:
		}
	case s.first == nil:
		s.first = received
		s.cancel(&signalError{received.(syscall.Signal)})
	}
}

// endAtOnce makes the first signal end the program at once: for commands that
// have nothing to put in order.
func (s *signals) endAtOnce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.immediate = true
}

// forwardTo hands every signal to f, until it is called with nil. A signal
// that ended the context before is handed over, too.
func (s *signals) forwardTo(f func(os.Signal)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forward = f
	if f != nil && s.first != nil {
		f(s.first)
	}
}

// outliveReaders is for commands that stop in order: without it, a message to
// a reader that has gone (a pager that was left, a tee that ^C ended as well)
// ends the process at once. The signal is received instead of ignored, because
// programs that we start would inherit its being ignored.
func (s *signals) outliveReaders(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		received := make(chan os.Signal, 1)
		signal.Notify(received, syscall.SIGPIPE)
		defer signal.Stop(received)
		return action(c)
	}
}

// ignoreHangup is for the background process, which has no terminal.
func (s *signals) ignoreHangup() { signal.Ignore(syscall.SIGHUP) }
