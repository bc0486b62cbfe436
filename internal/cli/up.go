package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/control"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/kubeconfig"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

func (p *program) upCommand() *cli.Command {
	return &cli.Command{
		Name:  "up",
		Usage: "start the appliance, in the foreground or with -d in the background",
		Description: "A second up on a ready appliance with the same settings is success.\n" +
			"The first ^C stops in order and keeps the data, the second one ends at once.",
		Flags:  upFlags(),
		Action: p.signals.outliveReaders(noArguments(p.up)),
	}
}

func (p *program) up(c *cli.Context) error {
	config, err := p.upConfig(c)
	if err != nil {
		return err
	}
	if events, err := p.inBackground(); err != nil {
		return err
	} else if events != nil {
		defer events.Close()
		return p.upInBackground(c.Context, config, events)
	}
	if c.Bool("detach") {
		return p.detach(c.Context, config)
	}
	reporter := p.newReporter(p.printer(config.common), config.common, true)
	defer reporter.out.close()
	err = p.runAppliance(c.Context, config, reporter.event)
	return reporter.finish(c.Context, err)
}

// runAppliance starts the appliance and runs it until it ends. It returns nil
// at once, after a ready event, if it is running with the same settings.
func (p *program) runAppliance(ctx context.Context, config upConfig, onEvent func(supervisor.Event)) error {
	folder, running, err := openFolder(ctx, &config, func(message string) {
		onEvent(supervisor.Event{Kind: supervisor.NoticeEvent, Time: time.Now().UTC(), Message: message})
	})
	if err != nil {
		return err
	}
	if running != nil {
		onEvent(readyEvent(*running))
		return nil
	}
	config.options.Folder, config.options.OnEvent = folder, onEvent
	if config.ephemeral {
		p.ephemeral.Store(folder)
	}
	err = func() error {
		if err := catchCrash(folder.Path); err != nil {
			return err
		}
		appliance, err := supervisor.New(config.options)
		if err != nil {
			return err
		}
		return appliance.Run(ctx)
	}()
	if config.keepLogs != "" {
		_, copyErr := copyLogs(folder.Path, config.keepLogs)
		err = errors.Join(err, copyErr)
	}
	if !config.ephemeral {
		return errors.Join(err, folder.Close())
	}
	if p.ephemeral.Swap(nil) == nil {
		return err // it is being deleted already
	}
	if nodeErr := supervisor.RemoveNode(context.WithoutCancel(ctx), folder.State()); nodeErr != nil {
		return errors.Join(err, nodeErr, folder.Close()) // kept, to be cleared by the next start
	}
	return errors.Join(err, folder.Delete())
}

// openFolder takes the data folder for a new run. If an appliance with the
// same settings is ready in it, that one's status is returned instead.
func openFolder(ctx context.Context, config *upConfig, notice func(string)) (*datadir.Folder, *control.Status, error) {
	if config.options.Kubeconfig != "" {
		owner, err := ownerPath(config.dataDir)
		if err != nil {
			return nil, nil, err
		}
		if err := kubeconfig.Check(config.options.Kubeconfig, kubeconfig.ContextName(config.name), owner); err != nil {
			return nil, nil, err
		}
	}
	if config.recreate {
		if _, err := stopAppliance(ctx, config.common); err != nil {
			return nil, nil, err
		}
	}
	folder, err := datadir.Open(config.dataDir, config.name)
	for locked := new(datadir.LockedError); errors.As(err, &locked); {
		running, compareErr := compareRunning(ctx, *config, locked)
		if running != nil || compareErr != nil {
			return nil, running, compareErr
		}
		if err := awaitEnd(ctx, config.common, locked.PID, stopLimit); err != nil {
			return nil, nil, err
		}
		folder, err = datadir.Open(config.dataDir, config.name)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := takeOver(ctx, config, folder, notice); err != nil {
		return nil, nil, errors.Join(err, folder.Abandon())
	}
	return folder, nil, nil
}

// compareRunning looks at the process that owns the folder. A nil status
// without an error means that it is stopping, and worth waiting for.
func compareRunning(ctx context.Context, config upConfig, locked *datadir.LockedError) (*control.Status, error) {
	status, err := statusOf(ctx, config.common)
	if err != nil {
		return nil, err
	}
	switch status.State {
	case control.NotRunning, control.Stopping:
		return nil, nil
	case control.Ready, control.Degraded:
	default:
		return nil, fmt.Errorf("%w, which has not finished starting: see taskctl status%s", locked, config.nameFlag())
	}
	if difference := differences(settingsNow(status), config.asked()); difference != "" {
		return nil, fmt.Errorf("the appliance %q is running (process %d) with other settings: %s; stop it first with taskctl down%s",
			config.name, status.PID, difference, config.nameFlag())
	}
	return &status, nil
}

// settingsNow are what a running appliance was started with, and the port that
// it got.
func settingsNow(status control.Status) map[string]string {
	settings := maps.Clone(status.Settings)
	if server, err := url.Parse(status.Server); err == nil && settings != nil {
		settings["port"] = server.Port()
	}
	return settings
}

// differences names the settings that differ; what one side leaves open does
// not.
func differences(running, asked map[string]string) string {
	var names []string
	for name, value := range asked {
		if running[name] != value {
			names = append(names, fmt.Sprintf("%s is %q, asked for is %q", name, running[name], value))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// takeOver makes the folder of an earlier run ready for the next one.
func takeOver(ctx context.Context, config *upConfig, folder *datadir.Folder, notice func(string)) error {
	state := folder.State()
	switch {
	case folder.Fresh():
	case recreatesNode(config, folder):
		config.options.Kind.Recreate = true
	case config.recreate, state.Ephemeral, halfMade(state):
		// An ephemeral one that is still there was killed.
		if state.Kubeconfig != nil {
			if err := supervisor.Unmerge(ctx, folder.Path, state.Kubeconfig); err != nil {
				return err
			}
		}
		if err := supervisor.RemoveNode(ctx, state); err != nil {
			return err
		}
		if err := folder.Empty(); err != nil {
			return err
		}
	case config.ephemeral:
		return fmt.Errorf("the data folder %s holds data that --ephemeral would delete: choose another --name, or delete it with taskctl down --purge%s", folder.Path, config.nameFlag())
	}
	driver, err := keptDriver(config, folder)
	if err != nil {
		return err
	}
	if err := refuseHalfRestored(folder.Path); err != nil {
		return err
	}
	if err := chooseStorage(config, folder); err != nil {
		return err
	}
	kept, err := keptTopology(config.options.Storage)
	if err != nil {
		return err
	}
	config.options.StorageKept = kept
	if err := folder.Prepare(); err != nil {
		return err
	}
	if driver != "" {
		config.setDriver(driver)
	} else if err := decideDriver(ctx, config, folder, notice); err != nil {
		return err
	}
	return folder.Update(func(s *datadir.State) {
		s.Ephemeral = config.ephemeral
		if s.Storage == "" {
			s.Storage, s.Topology = config.options.Storage.String(), kept
		}
	})
}

// readyEvent is the ready event of an appliance that runs already.
func readyEvent(status control.Status) supervisor.Event {
	return supervisor.Event{
		Kind: supervisor.ReadyEvent, Time: time.Now().UTC(), AlreadyRunning: true, Name: status.Name, Driver: status.Driver, Server: status.Server, Context: status.Context,
		Kubeconfig: status.Kubeconfig, DataDir: status.DataDir, PID: status.PID, RunID: status.RunID,
	}
}

// endedBySignal is the exit of a foreground run that a signal ended cleanly:
// 130 after ^C, 0 after SIGTERM and SIGHUP.
func endedBySignal(ctx context.Context) error {
	var bySignal *signalError
	if errors.As(context.Cause(ctx), &bySignal) && bySignal.signal == syscall.SIGINT {
		return &exitError{code: bySignal.code()}
	}
	return nil
}
