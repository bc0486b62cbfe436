package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/control"
	"github.com/taskctl-dev/taskctl/internal/datadir"
)

func (p *program) listCommand() *cli.Command {
	return &cli.Command{
		Name:        "list",
		Aliases:     []string{"ls"},
		Usage:       "list this user's appliances",
		Description: "Those whose data folder was chosen with --data-dir are not found.",
		Action:      noArguments(p.list),
	}
}

// listResult is the JSON output of list; docs/json.md has it.
type listResult struct {
	Appliances []control.Status `json:"appliances"`
}

func (p *program) list(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	statuses, err := p.appliances(c.Context)
	if err != nil {
		return err
	}
	out := p.printer(values)
	if values.json {
		return out.object(listResult{statuses})
	}
	if len(statuses) == 0 {
		out.message("there are no appliances; start one with taskctl up")
		return nil
	}
	table := tabwriter.NewWriter(p.env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tAPI SERVER\tPROCESS\tDATA FOLDER")
	for _, status := range statuses {
		server, process := "-", "-"
		if status.State != control.NotRunning {
			server, process = status.Server, fmt.Sprint(status.PID)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", status.Name, status.State, server, process, status.DataDir)
	}
	return table.Flush()
}

// appliances are those below the root of all data folders, by name.
func (p *program) appliances(ctx context.Context) ([]control.Status, error) {
	root, err := datadir.Root(p.env.Getenv)
	if err != nil {
		return nil, err
	}
	names, err := datadir.Names(root)
	if err != nil {
		return nil, err
	}
	statuses := []control.Status{}
	for _, name := range names {
		values := common{name: name, dataDir: filepath.Join(root, name)}
		info, err := datadir.Inspect(values.dataDir)
		if err == nil && !info.Exists && !info.Held {
			continue // not ours
		}
		status, err := statusOf(ctx, values)
		if err != nil {
			// One that can't be read must not hide the others.
			status = control.Status{Name: name, State: "unreadable", DataDir: values.dataDir}
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}
