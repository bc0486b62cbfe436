package cli

import (
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/cluster/embedded"
	"github.com/taskctl-dev/taskctl/internal/version"
)

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name:   "version",
		Usage:  "print the versions of taskctl and of what is in it",
		Action: noArguments(p.printVersion),
	}
}

// versions is the JSON output of version; docs/json.md has it.
type versions struct {
	Taskctl    string `json:"taskctl"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func (p *program) printVersion(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	v := versions{
		Taskctl:    version.String(),
		Kubernetes: embedded.Version,
		Etcd:       version.Module("go.etcd.io/etcd/server/v3"),
		Go:         runtime.Version(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
	out := p.printer(values)
	if values.json {
		return out.object(v)
	}
	out.data("taskctl %s\nKubernetes %s\netcd %s\n%s %s\n", v.Taskctl, v.Kubernetes, v.Etcd, v.Go, v.Platform)
	return nil
}
