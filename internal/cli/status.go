package cli

import (
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/control"
)

func (p *program) statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show the appliance's state and that of each component",
		Description: "Exit code 0: ready; 3: not running; 4: starting, stopping, or a component is not ready.\n" +
			"The fields of -o json are documented in docs/json.md.",
		Action: noArguments(p.status),
	}
}

func (p *program) status(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	status, err := statusOf(c.Context, values)
	if err != nil {
		return err
	}
	out := p.printer(values)
	if values.json {
		err = out.object(status)
	} else {
		p.printStatus(status)
	}
	if err != nil {
		return err
	}
	switch status.State {
	case control.Ready:
		return nil
	case control.NotRunning:
		if !values.json {
			out.message("start it with: taskctl up%s", values.nameFlag())
		}
		return &exitError{code: codeNotRunning}
	default:
		return &exitError{code: codeNotReady}
	}
}

func (p *program) printStatus(status control.Status) {
	table := tabwriter.NewWriter(p.env.Stdout, 0, 0, 2, ' ', 0)
	defer table.Flush()
	row := func(cells ...string) {
		for i, cell := range cells {
			if i > 0 {
				cell = "\t" + cell
			}
			table.Write([]byte(cell))
		}
		table.Write([]byte("\n"))
	}
	row("Appliance:", status.Name)
	row("State:", string(status.State))
	if status.PID != 0 {
		row("Process:", strconv.Itoa(status.PID))
	}
	if !status.StartedAt.IsZero() {
		row("Running for:", age(status.StartedAt))
	}
	if status.Memory != nil {
		row("Memory:", megabytes(status.Memory.Resident)+" ("+megabytes(status.Memory.Anonymous)+" anonymous)")
	}
	if status.Server != "" {
		row("API server:", status.Server)
		row("Context:", status.Context)
		row("Storage:", status.Storage)
	}
	row("Data folder:", status.DataDir)
	if last := status.LastRun; last != nil {
		row("Last run:", endOf(last))
	}
	if len(status.Components) == 0 {
		return
	}
	table.Flush()
	row()
	row("COMPONENT", "STATE", "SINCE", "RESTARTS", "LAST ERROR")
	for _, component := range status.Components {
		row(component.Name, component.State, age(component.Since), strconv.Itoa(component.Restarts), component.LastError)
	}
}

// endOf says how the last run ended, in a few words.
func endOf(last *control.LastRun) string {
	text := last.End
	if !last.StoppedAt.IsZero() {
		text += " " + age(last.StoppedAt) + " ago"
	}
	switch {
	case last.Component != "":
		text += ": " + last.Component + ": " + last.Error
	case last.Error != "":
		text += ": " + last.Error
	}
	if last.LogFile != "" {
		text += " (" + last.LogFile + ")"
	}
	return strings.ReplaceAll(text, "\n", "; ")
}

func megabytes(bytes int64) string { return strconv.FormatInt(bytes>>20, 10) + " MiB" }
