package cli

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
	"github.com/taskctl-dev/taskctl/internal/version"
	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/serve"
	"github.com/taskctl-dev/taskctl/storage/server"
)

func (p *program) storageCommand() *cli.Command {
	return &cli.Command{
		Name:  "storage",
		Usage: "the etcd-compatible store: alone, or of an appliance",
		Subcommands: []*cli.Command{
			p.storageServeCommand(),
			p.storageRoutesCommand(),
			p.storageExplainCommand(),
			p.storageBackupCommand(),
			p.storageRestoreCommand(),
			p.storageVerifyCommand(),
			p.storageLeaveCommand(),
			p.storageMoveCommand(),
		},
	}
}

func (p *program) storageServeCommand() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "serve the etcd v3 API from a database, in the foreground",
		Description: "When it answers, its URLs are printed to standard output, one a line. The data folder is owned by\n" +
			"the process: an appliance can't run in it at the same time.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "configuration `FILE`, of which the storage section counts; flags win over it"},
			storageFlag(defaultServed),
			topologyFlag(),
			&cli.StringSliceFlag{Name: "listen", Value: cli.NewStringSlice("http://127.0.0.1:2379"), Usage: "`URL` to answer on: http://HOST:PORT, https://HOST:PORT or unix:///PATH; port 0 is a free one; may be repeated"},
			&cli.StringFlag{Name: "cert-file", Usage: "server certificate `FILE` for https"},
			&cli.StringFlag{Name: "key-file", Usage: "`FILE` with the certificate's key"},
			&cli.StringFlag{Name: "trusted-ca-file", Usage: "`FILE` with the authorities of client certificates, which clients must then show"},
			&cli.DurationFlag{Name: "progress-notify-interval", Usage: "`INTERVAL` at which watches that ask for it are told their progress", DefaultText: "10m, as etcd; kube-apiserver wants 5s"},
		},
		Action: p.signals.outliveReaders(noArguments(p.storageServe)),
	}
}

// defaultServed is the database of `storage serve` without --storage.
const defaultServed = "sqlite"

// servedResult is the JSON output of storage serve; docs/json.md has it.
type servedResult struct {
	URLs []string `json:"urls"`
}

func (p *program) storageServe(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	out := p.printer(values)
	chosen, err := servedStorage(c, out)
	if err != nil {
		return err
	}
	topology, err := supervisor.Topology(chosen)
	if err != nil {
		return err
	}
	folder, err := datadir.OpenBare(values.dataDir)
	if err != nil {
		return err
	}
	if err := refuseHalfRestored(folder.Path); err != nil {
		return errors.Join(err, folder.Close())
	}
	level := slog.LevelWarn - slog.Level(4*values.verbosity)
	if values.quiet {
		level = slog.LevelError
	}
	server := &serve.Server{
		Store:                  storage.Config{Topology: topology, DataDir: folder.Path},
		Program:                version.String(),
		Listen:                 c.StringSlice("listen"),
		TLS:                    server.TLSFiles{CertFile: c.String("cert-file"), KeyFile: c.String("key-file"), ClientCAFile: c.String("trusted-ca-file")},
		ProgressNotifyInterval: c.Duration("progress-notify-interval"),
		Logger:                 slog.New(slog.NewTextHandler(p.env.Stderr, &slog.HandlerOptions{Level: level})),
	}
	began := time.Now()
	err = server.Run(c.Context, func() {
		out.message("%s answers after %s", chosen, seconds(time.Since(began)))
		if values.json {
			// A reader that has gone is no reason to stop.
			_ = out.object(servedResult{server.URLs()})
			return
		}
		out.data("%s\n", strings.Join(server.URLs(), "\n"))
	})
	err = errors.Join(err, folder.Close())
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return endedBySignal(c.Context)
}

// servedStorage is what the flags or the file name.
func servedStorage(c *cli.Context, out *printer) (config.Storage, error) {
	chosen, err := namedStorage(c, out, defaultServed)
	if err != nil {
		return chosen, err
	}
	if chosen.IsZero() {
		chosen = config.FromSpec(defaultServed)
	}
	if chosen.String() == "etcd" {
		return chosen, usageError("etcd is an etcd already: run etcd itself, or serve sqlite, postgres://… or mysql://…")
	}
	return chosen, nil
}
