package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/internal/lifecycle"
	"github.com/taskctl-dev/taskctl/internal/logging"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// reporter tells what happens while an appliance starts, runs and ends: as
// JSON lines, as a spinner, or as plain lines.
type reporter struct {
	out        *printer
	values     common
	foreground bool
	began      time.Time

	mu       sync.Mutex
	starting []string
	ready    bool
}

func newReporter(out *printer, values common, foreground bool) *reporter {
	return &reporter{out: out, values: values, foreground: foreground, began: time.Now()}
}

// event is the appliance's OnEvent.
func (r *reporter) event(event supervisor.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
  kubectl --context %s get namespaces
  taskctl demo%s
  taskctl status%s

There are no nodes: Pods stay Pending.`, event.Server, event.Context, event.DataDir, event.Context, name, name)
	switch {
	case event.AlreadyRunning:
	case r.foreground:
		r.out.message("Press ^C to stop; the data stays.")
	default:
		r.out.message("Stop it with: taskctl down%s", name)
	}
}

// finish tells how a foreground run ended and gives its exit.
func (r *reporter) finish(ctx context.Context, err error) error {
	if err == nil {
		return endedBySignal(ctx)
	}
	var blamed *lifecycle.Error
	if !errors.As(err, &blamed) {
		if r.values.json {
			r.failed(supervisor.Event{Kind: supervisor.FailedEvent, Time: time.Now().UTC(), Reason: oneLine(err)})
		}
		return err
	}
	return r.blame(blamed.Component, blamed.Err.Error(), blamed.LogFile)
}

// failed prints a failed event that the supervisor did not.
func (r *reporter) failed(event supervisor.Event) { r.event(event) }

// blame is the error for a component that failed, with its last log lines
// before it.
func (r *reporter) blame(component, reason, logFile string) error {
	reason = oneLine(errors.New(reason))
	if component == "" {
		return errors.New(reason)
	}
	if lines := lastLines(logFile); len(lines) > 0 && !r.values.json {
		r.out.message("the last lines of %s:\n  %s", logFile, strings.Join(lines, "\n  "))
	}
	return fmt.Errorf("%s failed: %s; its log: %s", component, reason, logFile)
}

// shownLines is how many lines of a log people are shown.
const shownLines = 10

// lastLines are the newest lines of a log that are worth showing: stacks stay
// in the file.
func lastLines(file string) []string {
	lines, err := logging.Last(file, 20*shownLines)
	if err != nil {
		return nil
	}
	lines = slices.DeleteFunc(lines, isStack)
	return lines[max(0, len(lines)-shownLines):]
}

// isStack recognises the lines of a goroutine's stack, behind the time that
// each log line begins with.
func isStack(line string) bool {
	_, text, _ := strings.Cut(line, " ")
	return text == "" || strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "goroutine ") ||
		strings.HasPrefix(text, "created by ") || strings.HasPrefix(text, "panic(") ||
		strings.HasSuffix(text, ")") && strings.Contains(text, "(0x") || strings.HasSuffix(text, "(...)") ||
		strings.HasSuffix(text, "()") && !strings.Contains(text, " ")
}
