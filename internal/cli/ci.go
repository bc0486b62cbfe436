package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

func (p *program) ciCommand() *cli.Command {
	return &cli.Command{
		Name:      "ci",
		Usage:     "run a command against a throw-away appliance",
		ArgsUsage: "[--] COMMAND [ARGUMENTS...]",
		Description: "The command finds the appliance by KUBECONFIG; USE_EXISTING_CLUSTER=true is set for envtest.\n" +
			"Taskctl itself finds it, too. The user's kubeconfig is never touched. Exit code: the command's own; 125 when the appliance\n" +
			"failed, 126 when the command could not be executed, 127 when there is none. See docs/ci.md.",
		Flags:  append(applianceFlags(), &cli.StringFlag{Name: "keep-logs", Usage: "copy the log files to the folder `DIR` at the end"}),
		Action: p.signals.outliveReaders(p.ci),
	}
}

func (p *program) ci(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	if c.NArg() == 0 {
		return usageError("ci needs a command, like: taskctl ci -- go test ./...")
	}
	command, err := lookUp(c.Args().Slice())
	if err != nil {
		return err
	}
	// Flags count, the environment does not: it names the appliance that the
	// user works with.
	if !c.IsSet("name") || values.name == p.env.Getenv("TASKCTL_NAME") {
		values.name = "ci-" + randomName()
	}
	if !c.IsSet("data-dir") || c.String("data-dir") == p.env.Getenv("TASKCTL_DATA_DIR") {
		root, err := datadir.Root(p.env.Getenv)
		if err != nil {
			return &exitError{codeAppliance, err}
		}
		values.dataDir = filepath.Join(root, values.name)
		sweep(root)
	}
	config, err := applianceConfig(c, values)
	for _, notice := range config.notices {
		p.printer(values).message("note: %s", notice)
	}
	if err != nil {
		return err
	}
	config.ephemeral = true
	if config.cluster == auto {
		config.cluster = supervisor.EmbeddedDriver
	}
	config.options.Settings = config.settings()
	if config.keepLogs = c.String("keep-logs"); config.keepLogs != "" {
		if config.keepLogs, err = filepath.Abs(config.keepLogs); err != nil {
			return err
		}
	}
	return p.runCommandBeside(c.Context, config, command)
}

// runCommandBeside runs the command while the appliance is ready, and takes
// the appliance down when it has ended.
func (p *program) runCommandBeside(ctx context.Context, config upConfig, command *exec.Cmd) error {
	out := p.printer(config.common)
	defer out.close()
	reporter := p.newReporter(out, config.common, true)
	appliance, stop := context.WithCancel(ctx)
	defer stop()
	ready, ended := make(chan supervisor.Event, 1), make(chan error, 1)
	go func() {
		ended <- p.runAppliance(appliance, config, func(event supervisor.Event) {
			switch {
			case event.Kind == supervisor.ReadyEvent:
				out.message("%s is ready after %s", event.Name, seconds(time.Since(reporter.began)))
				ready <- event
			case !config.json:
				reporter.event(event)
			}
		})
	}()

	select {
	case err := <-ended:
		return applianceFailed(ctx, reporter, err)
	case event := <-ready:
		out.close()
		command.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "TASKCTL_NAME="+event.Name, "TASKCTL_DATA_DIR="+event.DataDir)
		for name, value := range kubectlEnvironment(event.DataDir) {
			command.Env = append(command.Env, name+"="+value)
		}
		result := p.runForwarding(command, ended)
		stop()
		if result.applianceEnded {
			return applianceFailed(ctx, reporter, result.applianceErr)
		}
		if err := <-ended; err != nil {
			// The command's own result counts; what is left behind is said.
			out.message("the appliance did not stop cleanly: %s", oneLine(err))
		}
		return result.err
	}
}

// applianceFailed is the exit of a ci whose appliance ended before the command
// had: a signal's own code if that is why, else 125.
func applianceFailed(ctx context.Context, reporter *reporter, err error) error {
	var bySignal *signalError
	if errors.As(context.Cause(ctx), &bySignal) {
		return &exitError{code: bySignal.code()}
	}
	if err == nil {
		err = errors.New("the appliance was stopped from outside")
	} else if blamed := reporter.finish(ctx, err); blamed != nil {
		err = blamed
	}
	return &exitError{codeAppliance, err}
}

// lookUp finds the command before anything is started for it.
func lookUp(words []string) (*exec.Cmd, error) {
	command := exec.Command(words[0], words[1:]...)
	switch {
	case command.Err == nil:
	case errors.Is(command.Err, exec.ErrNotFound), errors.Is(command.Err, os.ErrNotExist):
		return nil, &exitError{codeNotFound, fmt.Errorf("there is no command %q", words[0])}
	default:
		return nil, &exitError{codeCannotRun, fmt.Errorf("the command %q can't be executed: %w", words[0], command.Err)}
	}
	if info, err := os.Stat(command.Path); errors.Is(err, os.ErrNotExist) {
		return nil, &exitError{codeNotFound, fmt.Errorf("there is no command %q", words[0])}
	} else if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		return nil, &exitError{codeCannotRun, fmt.Errorf("the command %q can't be executed: it is no program", words[0])}
	}
	return command, nil
}

func randomName() string {
	var random [6]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return hex.EncodeToString(random[:])
}

// sweep deletes the folders of throw-away appliances that were killed. One
// that can't be deleted is the next run's.
func sweep(root string) {
	names, err := datadir.Names(root)
	if err != nil {
		return
	}
	for _, name := range names {
		path := filepath.Join(root, name)
		info, err := datadir.Inspect(path)
		if err != nil || info.Held || !info.Exists || !info.State.Ephemeral || info.State.Kubeconfig != nil {
			continue
		}
		if folder, err := datadir.Open(path, name); err == nil {
			if supervisor.RemoveNode(context.Background(), info.State) == nil {
				_ = folder.Delete()
				continue
			}
			_ = folder.Close()
		}
	}
}
