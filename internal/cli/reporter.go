package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/internal/lifecycle"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// reporter tells what happens while an appliance starts, runs and ends: as
// JSON lines, as a spinner, or as plain lines.
type reporter struct {
	out        *printer
	values     common
	foreground bool
	kubectl    func(context string) string // how kubectl is called on the appliance
	began      time.Time

	mu       sync.Mutex
	starting []string
	ready    bool
	failure  *supervisor.Event // what the supervisor said of the failure
}

func (p *program) newReporter(out *printer, values common, foreground bool) *reporter {
	kubectl := func(context string) string { return p.kubectlHint(values, context) }
	return &reporter{out: out, values: values, foreground: foreground, kubectl: kubectl, began: time.Now()}
}

// event is the appliance's OnEvent.
func (r *reporter) event(event supervisor.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if event.Kind == supervisor.FailedEvent {
		r.failure = &event
	}
	if r.values.json {
		// ready is the last one of a run that does not fail.
		if !r.ready || event.Kind == supervisor.FailedEvent {
			// A reader that has gone is no reason to stop.
			_ = r.out.object(event)
		}
		r.ready = r.ready || event.Kind == supervisor.ReadyEvent
		return
	}
	switch event.Kind {
	case supervisor.ComponentEvent:
		r.component(event)
	case supervisor.ProgressEvent:
		r.out.progress("%s", event.Message)
		r.out.line("%s", event.Message)
	case supervisor.NoticeEvent:
		r.out.message("note: %s", event.Message)
	case supervisor.ReadyEvent:
		r.ready = true
		r.banner(event)
	case supervisor.StoppingEvent:
		r.began = time.Now()
		r.out.progress("stopping")
		r.out.line("stopping")
	case supervisor.StoppedEvent:
		r.out.message("stopped after %s", seconds(time.Since(r.began)))
	}
}

// component tells of a component's change of state.
func (r *reporter) component(event supervisor.Event) {
	r.starting = slices.DeleteFunc(r.starting, func(name string) bool { return name == event.Component })
	switch lifecycle.State(event.State) {
	case lifecycle.Starting:
		r.starting = append(r.starting, event.Component)
	case lifecycle.Ready:
		r.out.line("%s is ready (%s)", event.Component, seconds(time.Since(r.began)))
	case lifecycle.BackingOff:
		r.out.message("%s ended and is started again: %s", event.Component, event.Reason)
	}
	if !r.ready && len(r.starting) > 0 {
		r.out.progress("starting %s", strings.Join(r.starting, ", "))
	}
}

// banner says where the appliance is and what to try.
func (r *reporter) banner(event supervisor.Event) {
	if event.AlreadyRunning {
		r.out.message("%s is running already (process %d)", event.Name, event.PID)
	} else {
		r.out.message("%s is ready after %s", event.Name, seconds(time.Since(r.began)))
	}
	name := r.values.nameFlag()
	r.out.message(`
  API server  %s
  Context     %s
  Data folder %s

Try:
  %s get namespaces
  taskctl demo%s
  taskctl status%s`, event.Server, event.Context, event.DataDir, r.kubectl(event.Context), name, name)
	if event.Driver == supervisor.EmbeddedDriver {
		r.out.message("\nThere are no nodes: Pods stay Pending.")
	}
	switch {
	case event.AlreadyRunning:
	case r.foreground:
		r.out.message("Press ^C to stop; the data stays.")
	default:
		r.out.message("Stop it with: taskctl down%s", name)
	}
}

// finish tells how a run ended and gives its exit.
func (r *reporter) finish(ctx context.Context, err error) error {
	if err == nil {
		return endedBySignal(ctx)
	}
	if r.failure == nil {
		r.event(supervisor.Event{Kind: supervisor.FailedEvent, Time: time.Now().UTC(), Reason: oneLine(err)})
		return err
	}
	return r.blame(*r.failure)
}

// blame is the error of a failed run, with the last log lines of the component
// to blame before it.
func (r *reporter) blame(failure supervisor.Event) error {
	reason := oneLine(errors.New(failure.Reason))
	if failure.Component == "" {
		return errors.New(reason)
	}
	if len(failure.LogLines) > 0 && !r.values.json {
		r.out.message("the last lines of the log of %s:\n  %s", failure.Component, strings.Join(failure.LogLines, "\n  "))
	}
	if _, err := os.Stat(failure.LogFile); err != nil {
		return fmt.Errorf("%s failed: %s; its log is gone with the ephemeral data folder", failure.Component, reason)
	}
	return fmt.Errorf("%s failed: %s; its log: %s", failure.Component, reason, failure.LogFile)
}
