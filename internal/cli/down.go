package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// stopLimit is how long an appliance may take to stop in order. It stops
// within 3 s unless something hangs; then its own limits add up to less than
// this.
const stopLimit = 90 * time.Second

func (p *program) downCommand() *cli.Command {
	return &cli.Command{
		Name:        "down",
		Usage:       "stop the appliance; its data stays unless --purge is given",
		Description: "Stopping what does not run is success.",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "purge", Usage: "delete the data folder as well"}},
		Action:      noArguments(p.down),
	}
}

// downResult is the JSON output of down; docs/json.md has it.
type downResult struct {
	Name    string `json:"name"`
	Stopped bool   `json:"stopped"`
	Purged  bool   `json:"purged"`
}

func (p *program) down(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	out := p.printer(values)
	defer out.close()
	result := downResult{Name: values.name}
	out.progress("stopping %s", values.name)
	began := time.Now()
	if result.Stopped, err = stopAppliance(c.Context, values); err != nil {
		return err
	}
	if result.Purged, err = clearFolder(c.Context, values, c.Bool("purge")); err != nil {
		return err
	}
	switch {
	case result.Stopped:
		out.message("stopped %s after %s", values.name, seconds(time.Since(began)))
	default:
		out.message("%s was not running", values.name)
	}
	if result.Purged {
		out.message("deleted %s", values.dataDir)
	}
	if values.json {
		return out.object(result)
	}
	return nil
}

// stopAppliance asks a running appliance to stop and waits until its process
// has given the data folder up. It reports whether one was running.
func stopAppliance(ctx context.Context, values common) (bool, error) {
	info, err := datadir.Inspect(values.dataDir)
	if err != nil && !info.Held || !info.Held {
		return false, err
	}
	// The socket opens a moment after the lock was taken, so a start that has
	// just begun is asked again.
	deadline := time.Now().Add(askLimit)
	for {
		var inspectErr error
		pid, err := askToStop(ctx, values)
		if err == nil {
			return true, awaitEnd(ctx, values, pid, stopLimit)
		}
		if info, inspectErr = datadir.Inspect(values.dataDir); inspectErr != nil || !info.Held {
			return true, inspectErr
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			return stopUnanswering(ctx, values, info, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stopUnanswering stops the owner of a folder whose control socket does not
// answer, because of asked.
func stopUnanswering(ctx context.Context, values common, info datadir.Info, asked error) (bool, error) {
	if err := datadir.Terminate(values.dataDir, info.PID); err != nil {
		return false, fmt.Errorf("%w; and stopping it by a signal failed: %w", asked, err)
	}
	return true, awaitEnd(ctx, values, info.PID, stopLimit)
}

func askToStop(ctx context.Context, values common) (pid int, err error) {
	client, err := client(values)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return client.Stop(ctx)
}

// clearFolder mends what a killed appliance left: entries in a kubeconfig, an
// ephemeral folder. With purge the folder is deleted. A folder that is not
// there is left so.
func clearFolder(ctx context.Context, values common, purge bool) (purged bool, err error) {
	info, err := datadir.Inspect(values.dataDir)
	if err != nil {
		return false, err
	}
	if !info.Exists || !purge && !info.State.Ephemeral && info.State.Kubeconfig == nil && info.State.Node == nil {
		return false, nil
	}
	folder, err := datadir.Open(values.dataDir, values.name)
	if err != nil {
		return false, err
	}
	if merged := folder.State().Kubeconfig; merged != nil {
		if err := supervisor.Unmerge(ctx, folder.Path, merged); err != nil {
			return false, errors.Join(err, folder.Close())
		}
		if err := folder.Update(func(s *datadir.State) { s.Kubeconfig = nil }); err != nil {
			return false, errors.Join(err, folder.Close())
		}
	}
	if purge || info.State.Ephemeral {
		if err := supervisor.RemoveNode(ctx, folder.State()); err != nil {
			return false, errors.Join(err, folder.Close())
		}
		return purge, folder.Delete()
	}
	// One that was killed has left its node running.
	return false, errors.Join(supervisor.StopNode(ctx, folder.State()), folder.Close())
}
