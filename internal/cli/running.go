package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/taskctl-dev/taskctl/internal/control"
	"github.com/taskctl-dev/taskctl/internal/datadir"
)

// askLimit is how long a control socket may take to answer.
const askLimit = 5 * time.Second

// statusOf is the state of the appliance in a data folder. A process that owns
// the folder and does not answer is starting: the socket opens a moment later
// than the lock is taken, and closes a moment before it is given up.
func statusOf(ctx context.Context, values common) (control.Status, error) {
	info, err := datadir.Inspect(values.dataDir)
	if err != nil {
		return control.Status{}, err
	}
	status := control.Status{Name: values.name, State: control.NotRunning, DataDir: values.dataDir}
	if info.Exists {
		status.Driver, status.Ephemeral = info.State.Driver, info.State.Ephemeral
	}
	if !info.Held {
		status.LastRun = lastRun(info.State, values.dataDir)
		return status, nil
	}
	status.PID, status.State = info.PID, control.Starting
	if info.State.PID != info.PID {
		return status, nil // state.json is still that of the run before
	}
	client := control.NewClient(info.State.ControlSocket())
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if answered, err := client.Status(ctx); err == nil {
		return answered, nil
	}
	return status, nil
}

// lastRun is how the last run ended, nil if there was none.
func lastRun(state datadir.State, dataDir string) *control.LastRun {
	if state.RunID == "" {
		return nil
	}
	last := &control.LastRun{End: "stopped", StartedAt: state.StartedAt.UTC(), StoppedAt: state.StoppedAt.UTC()}
	switch {
	case state.Failure != nil:
		last.End, last.Component, last.Error, last.LogFile = "failed", state.Failure.Component, state.Failure.Reason, state.Failure.LogFile
	case state.StoppedAt.IsZero():
		last.End = "killed"
		if line := crashLine(dataDir); line != "" {
			last.Error, last.LogFile = line, crashFile(dataDir)
		}
	}
	return last
}

// notRunning is the error of commands that need a running appliance.
func notRunning(values common) error {
	return &exitError{codeNotRunning, fmt.Errorf("the appliance %q is not running: start it with taskctl up%s", values.name, values.nameFlag())}
}

// client is a client of the running appliance, for the caller to close.
func client(values common) (*control.Client, error) {
	info, err := datadir.Inspect(values.dataDir)
	if err != nil {
		return nil, err
	}
	if !info.Held {
		return nil, notRunning(values)
	}
	return control.NewClient(info.State.ControlSocket()), nil
}

// awaitEnd waits until the process no longer owns the data folder, at most
// limit. Another may own it by then.
func awaitEnd(ctx context.Context, values common, pid int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := datadir.Inspect(values.dataDir)
		if err != nil {
			return err
		}
		// A new owner is 0 for the moment before it has written its own.
		if !info.Held || info.PID != pid && info.PID != 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if parent := context.Cause(ctx); parent != context.DeadlineExceeded {
				return parent
			}
			return fmt.Errorf("process %d has not stopped within %s: look at taskctl logs supervisor%s, or end it with kill -9 %d", pid, limit, values.nameFlag(), pid)
		}
	}
}

// ownerPath is how a data folder is named in kubeconfigs: its absolute path
// with symbolic links resolved, as far as it exists.
func ownerPath(dataDir string) (string, error) {
	path, err := filepath.Abs(dataDir)
	if err != nil {
		return "", fmt.Errorf("finding the data folder: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved, nil
	}
	return path, nil
}
