package supervisor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/taskctl-dev/taskctl/internal/control"
	"github.com/taskctl-dev/taskctl/internal/kubeconfig"
	"github.com/taskctl-dev/taskctl/internal/lifecycle"
	"github.com/taskctl-dev/taskctl/internal/logging"
)

// emit tells OnEvent, one event at a time.
func (a *Appliance) emit(event Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.emitLocked(event)
}

func (a *Appliance) emitLocked(event Event) {
	event.Time = time.Now().UTC()
	a.options.OnEvent(event)
}

// setState changes the appliance's state and tells of it, unless it is
// stopping already: nothing comes after that.
func (a *Appliance) setState(state control.State, event Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == control.Stopping {
		return
	}
	a.state = state
	a.emitLocked(event)
}

// State is the appliance's state; Degraded when it was ready and a component
// is not at the moment.
func (a *Appliance) State() control.State {
	a.mu.Lock()
	state := a.state
	a.mu.Unlock()
	if state != control.Ready {
		return state
	}
	for _, status := range a.group.Snapshot() {
		if status.State != lifecycle.Ready {
			return control.Degraded
		}
	}
	return control.Ready
}

func (a *Appliance) notice(message string) {
	a.log.Warn(message)
	a.emit(Event{Kind: NoticeEvent, Message: message})
}

// progress tells what is going on within a step that takes long.
func (a *Appliance) progress(message string) {
	a.log.Info(message)
	a.emit(Event{Kind: ProgressEvent, Message: message})
}

// componentChanged is called by the group for every change of state.
func (a *Appliance) componentChanged(status lifecycle.Status) {
	a.log.Info("component", "name", status.Name, "state", string(status.State), "restarts", status.Restarts, "lastError", status.LastError)
	event := Event{Kind: ComponentEvent, Component: status.Name, State: string(status.State)}
	if status.State == lifecycle.BackingOff || status.State == lifecycle.Failed {
		event.Reason, event.LogFile = status.LastError, status.LogFile
	}
	a.emit(event)
	if status.State == lifecycle.Failed {
		a.keepLogLines(status)
	}
	if status.State == lifecycle.Ready && (status.Name == Webhooks || status.Name == Aggregator) {
		select {
		case a.changed <- struct{}{}:
		default: // one poke is waiting already
		}
	}
}

func (a *Appliance) becomeReady() {
	a.log.Info("ready", "after", time.Since(a.started))
	a.setState(control.Ready, Event{
		Kind:           ReadyEvent,
		Name:           a.options.Name,
		Driver:         a.options.Driver,
		Server:         a.server,
		Context:        kubeconfig.ContextName(a.options.Name),
		Kubeconfig:     a.folder.Kubeconfig(),
		DataDir:        a.folder.Path,
		PID:            os.Getpid(),
		RunID:          a.runID,
		StartupSeconds: time.Since(a.started).Seconds(),
	})
}

// shownLines is how many lines of a log a FailedEvent has.
const shownLines = 10

// keepLogLines remembers the end of a failed component's log, and writes the
// reason behind it: what comes later tells of the stop. A log that can't be
// read or written must not hide the reason.
func (a *Appliance) keepLogLines(status lifecycle.Status) {
	lines, _ := logging.Last(status.LogFile, shownLines, a.started)
	a.mu.Lock()
	if a.logLines == nil {
		a.logLines = map[string][]string{}
	}
	if _, kept := a.logLines[status.Name]; !kept {
		a.logLines[status.Name] = lines
	}
	a.mu.Unlock()
	fmt.Fprintf(a.logs.Writer(status.Name), "%s failed: %s\n", status.Name, status.LastError)
}

// failedEvent tells of the first cause; the rest is in the supervisor's log.
func (a *Appliance) failedEvent(err error) Event {
	event := Event{Kind: FailedEvent, Reason: err.Error()}
	var blamed *lifecycle.Error
	if errors.As(err, &blamed) {
		event.Component, event.LogFile, event.Reason = blamed.Component, blamed.LogFile, blamed.Err.Error()
		a.mu.Lock()
		event.LogLines = a.logLines[blamed.Component]
		a.mu.Unlock()
	}
	return event
}

// Status is what the control socket says of the appliance.
func (a *Appliance) Status() control.Status {
	status := control.Status{
		Name:       a.options.Name,
		State:      a.State(),
		Version:    a.folder.State().Program,
		PID:        os.Getpid(),
		RunID:      a.runID,
		StartedAt:  a.started.UTC(),
		Server:     a.server,
		Context:    kubeconfig.ContextName(a.options.Name),
		DataDir:    a.folder.Path,
		Kubeconfig: a.folder.Kubeconfig(),
		Driver:     a.options.Driver,
		Storage:    a.storageName(),
		Ephemeral:  a.folder.State().Ephemeral,
		Memory:     control.OwnMemory(),
		Settings:   a.folder.State().Settings,
	}
	for _, component := range a.group.Snapshot() {
		status.Components = append(status.Components, control.Component{
			Name:      component.Name,
			State:     string(component.State),
			Since:     component.Since.UTC(),
			Restarts:  component.Restarts,
			LastError: component.LastError,
			LogFile:   component.LogFile,
		})
	}
	return status
}

// storageName is the kinds of databases, without addresses and passwords.
func (a *Appliance) storageName() string {
	var kinds []string
	for _, backend := range a.options.Storage.Ordered() {
		if kind := backendOf(backend.Endpoint); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, "+")
}
