package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	// Authentication plugins, for kubeconfigs that people bring along.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	componentcli "k8s.io/component-base/cli"

	"github.com/taskctl-dev/taskctl/internal/datadir"
)

func (p *program) kubectlCommand() *cli.Command {
	return &cli.Command{
		Name:            "kubectl",
		Usage:           "run the embedded kubectl on this appliance",
		UsageText:       "taskctl [--name NAME] kubectl ARGUMENTS...",
		Description:     "Everything behind kubectl is kubectl's own, flags included; plugins are found in PATH.",
		SkipFlagParsing: true,
		Action:          p.kubectl,
	}
}

// kubectlExit is the panic by which kubectl ends, with its exit code.
type kubectlExit struct{ code int }

func (p *program) kubectl(c *cli.Context) (err error) {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	arguments := c.Args().Slice()
	if info, err := datadir.Inspect(values.dataDir); err != nil {
		return err
	} else if !info.Held && needsCluster(arguments) {
		return notRunning(values)
	}
	// kubectl, its plugins and what they start find the cluster by these; it
	// reads them for itself, in more than one place.
	for name, value := range kubectlEnvironment(values.dataDir) {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	os.Args = append([]string{"kubectl"}, arguments...)

	// It has nothing to put in order, and handles what it must by itself.
	p.signals.endAtOnce()
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		if message != "" {
			fmt.Fprintln(p.env.Stderr, strings.TrimRight(message, "\n"))
		}
		panic(kubectlExit{code})
	})
	defer func() {
		if exit, ok := recover().(kubectlExit); ok {
			err = &exitError{code: exit.code}
		}
	}()
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		return usageError("kubectl: %w", err)
	}
	if err := componentcli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		cmdutil.CheckErr(err)
	}
	return nil
}

// kubectlEnvironment makes any kubectl mean the appliance. What it caches is
// the appliance's and goes with its folder: in the home folder it would stay,
// and be believed of another appliance that gets the same port.
func kubectlEnvironment(dataDir string) map[string]string {
	return map[string]string{"KUBECONFIG": datadir.Kubeconfig(dataDir), "KUBECACHEDIR": datadir.KubectlCache(dataDir)}
}

// needsCluster is false for what kubectl does without one.
func needsCluster(arguments []string) bool {
	if len(arguments) == 0 {
		return false
	}
	switch arguments[0] {
	case "help", "completion", "options", "plugin", "__complete", "__completeNoDesc":
		return false
	}
	return !slices.Contains(arguments, "--help") && !slices.Contains(arguments, "-h")
}
