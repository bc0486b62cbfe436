package cli

import (
	"github.com/urfave/cli/v2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/taskctl-dev/taskctl/internal/control"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/demo"
)

func (p *program) demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "seed Tasks, wait for the controller, print them with their Events",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: demo.DefaultTasks, Usage: "`NUMBER` of Tasks"},
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Value: demo.DefaultNamespace, Usage: "`NAMESPACE` of the Tasks"},
		},
		Action: noArguments(p.demo),
	}
}

func (p *program) demo(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	options := demo.Options{Tasks: c.Int("tasks"), Namespace: c.String("namespace")}
	if options.Tasks < 1 {
		return usageError("the number of Tasks must be at least 1, like --tasks %d", demo.DefaultTasks)
	}
	config, err := adminConfig(c, values)
	if err != nil {
		return err
	}
	out := p.printer(values)
	defer out.close()
	if !values.json {
		options.Out = writerFunc(func(text []byte) (int, error) { out.data("%s", text); return len(text), nil })
	}
	options.Progress = func(stage demo.Stage, done, total int) {
		out.progress("%s %d of %d Tasks", demoVerbs[stage], done, total)
	}
	result, err := demo.Run(c.Context, config, options)
	if err != nil {
		return err
	}
	if values.json {
		return out.object(result)
	}
	context := control.Status{}
	if status, err := statusOf(c.Context, values); err == nil {
		context = status
	}
	out.message(`
%d Tasks in namespace %s after %.1f s. Try:
  %[4]s -n %[2]s get tasks --selector example.example.com/priority=3 --field-selector spec.priority=3
  %[4]s -n %[2]s patch tasks task-sample-2 --type=json -p='[{"op":"replace","path":"/spec/taskState","value":"Finished"}]'
  %[4]s -n %[2]s get combinedtasks -w`, result.Tasks, result.Namespace, result.Seconds, p.kubectlHint(values, context.Context))
	return nil
}

var demoVerbs = map[demo.Stage]string{
	demo.StageCreate:  "creating",
	demo.StageObserve: "waiting for the controller to see",
}

// adminConfig reaches the running appliance as its administrator.
func adminConfig(c *cli.Context, values common) (*rest.Config, error) {
	status, err := statusOf(c.Context, values)
	if err != nil {
		return nil, err
	}
	if status.State == control.NotRunning {
		return nil, notRunning(values)
	}
	config, err := clientcmd.BuildConfigFromFlags("", datadir.Kubeconfig(values.dataDir))
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server's fairness protects it
	return config, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
