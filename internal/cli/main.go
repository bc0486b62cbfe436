package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// program is one run of the command line.
type program struct {
	env     Environment
	signals *signals
	args    []string // without the program's name, in urfave/cli's order

	ephemeral atomic.Pointer[datadir.Folder] // to be deleted however the program ends
}

// Main runs the command line and returns the exit code. args[0] is the
// program's name.
//
// On a second SIGINT or SIGTERM it returns while the command may still be
// running: the caller is expected to end the process.
func Main(args []string, env Environment) int {
	ctx, handler := handleSignals(context.Background())
	defer handler.stop()
	p := &program{env: env, signals: handler}
	app := p.app()

	result := make(chan error, 1)
	go func() { result <- p.run(ctx, app, args) }()
	select {
	case err := <-result:
		return p.report(ctx, err)
	case received := <-handler.forced:
		p.deleteAtOnce()
		return codeSignalOffset + int(received.(syscall.Signal))
	}
}

// deleteAtOnce deletes an ephemeral folder under a command that still runs: the
// process ends in a moment, and nothing of it may stay.
func (p *program) deleteAtOnce() {
	folder := p.ephemeral.Swap(nil)
	if folder == nil {
		return
	}
	// Best effort: what fails here, the next start mends.
	if merged := folder.State().Kubeconfig; merged != nil {
		_ = supervisor.Unmerge(context.Background(), folder.Path, merged)
	}
	_ = supervisor.RemoveNode(context.Background(), folder.State())
	_ = folder.Delete()
}

func (p *program) run(ctx context.Context, app *cli.App, args []string) error {
	ordered := reorder(app, args)
	if len(ordered) > 0 {
		p.args = ordered[1:]
	}
	return app.RunContext(ctx, ordered)
}

// report prints an error as one line and returns its exit code. An error that
// only says that a signal ended the context is the signal's own.
func (p *program) report(ctx context.Context, err error) int {
	var bySignal *signalError
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &bySignal) {
		return bySignal.code()
	}
	if errors.As(err, &bySignal) {
		return bySignal.code()
	}
	if err != nil && !silent(err) {
		fmt.Fprintf(p.env.Stderr, "error: %s\n", oneLine(err))
	}
	return exitCode(err)
}

// oneLine joins the lines of an error; joined errors have one each.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}

// app builds the command line. It is made anew for each run: urfave/cli keeps
// the parsed values in it.
func (p *program) app() *cli.App {
	usage := func(c *cli.Context, err error, _ bool) error {
		return usageError("%s; see: taskctl %s--help", flagError(err), strings.TrimPrefix(c.Command.FullName()+" ", "taskctl "))
	}
	app := &cli.App{
		Name:            "taskctl",
		Usage:           "a Kubernetes control plane for developers, in one process",
		HideVersion:     true,
		HideHelpCommand: true,
		Reader:          p.env.Stdin,
		Writer:          p.env.Stdout,
		ErrWriter:       p.env.Stderr,
		Flags:           commonFlags(),
		OnUsageError:    usage,
		// The default handler would end the process.
		ExitErrHandler: func(*cli.Context, error) {},
		Commands: []*cli.Command{
			p.upCommand(),
			p.downCommand(),
			p.statusCommand(),
			p.listCommand(),
			p.demoCommand(),
			p.logsCommand(),
			p.kubeconfigCommand(),
			p.kubectlCommand(),
			p.ciCommand(),
			p.storageCommand(),
			p.kindCommand(),
			p.operatorCommand(),
			p.aggregatorCommand(),
			p.doctorCommand(),
			p.completionCommand(),
			p.completeCommand(),
			p.versionCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usageError("there is no command %q; see: taskctl --help", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	complete(app.Commands, usage)
	return app
}

// complete gives every command what all have.
func complete(commands []*cli.Command, usage cli.OnUsageErrorFunc) {
	for _, command := range commands {
		command.HideHelpCommand = true
		command.OnUsageError = usage
		if !command.SkipFlagParsing {
			command.Flags = append(command.Flags, commonFlags()...)
		}
		if len(command.Subcommands) > 0 {
			command.Action = func(c *cli.Context) error {
				if c.NArg() > 0 {
					return usageError("there is no command %q; see: taskctl %s --help", c.Command.Name+" "+c.Args().First(), c.Command.Name)
				}
				return cli.ShowSubcommandHelp(c)
			}
			complete(command.Subcommands, usage)
		}
	}
}

// noArguments refuses arguments that a command does not have.
func noArguments(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.NArg() > 0 {
			return usageError("%s takes no arguments, it got %q; see: taskctl %s --help", c.Command.Name, c.Args().First(), c.Command.Name)
		}
		return action(c)
	}
}

// executable is the path of this program, for starting it again.
func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the program itself: %w", err)
	}
	return path, nil
}
