package cli

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/control"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/kubeconfig"
)

func (p *program) kubeconfigCommand() *cli.Command {
	return &cli.Command{
		Name:        "kubeconfig",
		Usage:       "print the administrator's kubeconfig",
		Description: "It has the administrator's key in it: whoever reads it may do anything in the appliance.",
		Action:      noArguments(p.kubeconfig),
	}
}

// kubeconfigResult is the JSON output of kubeconfig; docs/json.md has it.
type kubeconfigResult struct {
	File    string `json:"file"`
	Context string `json:"context"`
	Content string `json:"content"`
}

func (p *program) kubeconfig(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	status, err := statusOf(c.Context, values)
	if err != nil {
		return err
	}
	if status.State == control.NotRunning {
		return notRunning(values)
	}
	file := datadir.Kubeconfig(values.dataDir)
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the appliance's kubeconfig: %w", err)
	}
	out := p.printer(values)
	if values.json {
		return out.object(kubeconfigResult{File: file, Context: kubeconfig.ContextName(values.name), Content: string(content)})
	}
	out.data("%s", content)
	return nil
}
