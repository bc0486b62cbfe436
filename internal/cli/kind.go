package cli

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

func (p *program) kindCommand() *cli.Command {
	return &cli.Command{
		Name:  "kind",
		Usage: "work with the node of an appliance that runs with --cluster kind",
		Subcommands: []*cli.Command{{
			Name:      "load",
			Usage:     "bring an image into the node, without a registry",
			ArgsUsage: "IMAGE|ARCHIVE",
			Description: "An archive is a file as `docker save` writes it. Pods find the image by its name and tag, with an\n" +
				"imagePullPolicy of IfNotPresent or Never.",
			Action: p.kindLoad,
		}},
	}
}

// loadResult is the JSON output of kind load; docs/json.md has it.
type loadResult struct {
	Node   string `json:"node"`
	Loaded string `json:"loaded"`
}

func (p *program) kindLoad(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	if c.NArg() != 1 {
		return usageError("kind load takes one image or archive, it got %d arguments; see: taskctl kind load --help", c.NArg())
	}
	info, err := datadir.Inspect(values.dataDir)
	switch {
	case err != nil:
		return err
	case !info.Held:
		return notRunning(values)
	case info.State.Node == nil:
		return fmt.Errorf("the appliance %q has no node: it runs with --cluster %s", values.name, info.State.Driver)
	}
	node, err := supervisor.NodeOf(c.Context, info.State)
	if err != nil {
		return err
	}
	what := c.Args().First()
	out := p.printer(values)
	defer out.close()
	out.progress("loading %s", what)
	began := time.Now()
	if err := node.Load(c.Context, what); err != nil {
		return err
	}
	out.message("loaded %s into %s after %s", what, node.Name(), seconds(time.Since(began)))
	if values.json {
		return out.object(loadResult{Node: node.Name(), Loaded: what})
	}
	return nil
}
