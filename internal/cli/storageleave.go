package cli

import (
	"log/slog"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/storage"
)

func (p *program) storageLeaveCommand() *cli.Command {
	return &cli.Command{
		Name:  "leave",
		Usage: "make an etcd that the store was in one that others can use directly, with larger revisions",
		Description: "Everything of the store's own is removed from that etcd, leases become its own, and its revision is\n" +
			"raised above every one that the store has shown. The store must be stopped. docs/storage.md has more.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "storage", EnvVars: []string{storageVariable}, Required: true, Usage: "`SPEC` of the etcd: https://HOST:2379, or etcd, the one in the data folder"},
			&cli.Int64Flag{Name: "past", Usage: "`REVISION` that the etcd has to come above, if the store had other backends and its data folder is not here"},
		},
		Action: noArguments(p.storageLeave),
	}
}

// leftResult is the JSON output of storage leave; docs/json.md has it.
type leftResult struct {
	Keys     int64 `json:"keys"`
	Leases   int64 `json:"leases"`
	Revision int64 `json:"revision"`
}

func (p *program) storageLeave(c *cli.Context) (err error) {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	config := storage.Config{
		Spec:   c.String("storage"),
		Logger: slog.New(slog.NewTextHandler(p.env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if strings.HasPrefix(config.Spec, "etcd") {
		folder, err := datadir.OpenBare(values.dataDir)
		if err != nil {
			return err
		}
		defer func() {
			if failed := folder.Close(); err == nil {
				err = failed
			}
		}()
		config.DataDir = folder.Path
	}
	left, err := storage.Leave(c.Context, config, c.Int64("past"))
	if err != nil {
		return err
	}
	out := p.printer(values)
	if values.json {
		return out.object(leftResult(left))
	}
	out.data("%d keys and %d leases are the etcd's own now, at revision %d\n", left.Keys, left.Leases, left.Revision)
	return nil
}
