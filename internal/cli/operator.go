package cli

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/lifecycle"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
	"github.com/taskctl-dev/taskctl/operator"
)

func (p *program) operatorCommand() *cli.Command {
	return &cli.Command{
		Name:  "operator",
		Usage: "the Task operator alone, for a real cluster",
		Subcommands: []*cli.Command{{
			Name:        "run",
			Usage:       "run the controller, and the webhooks if they have an address, in the foreground",
			Description: "manifests/deploy has the Deployment that runs it in a cluster.",
			Flags: append(partFlags(),
				&cli.StringFlag{Name: "webhook-address", Usage: "`ADDRESS` (HOST:PORT) of the admission webhooks", DefaultText: "they are not served"},
				&cli.StringFlag{Name: "health-address", Usage: "`ADDRESS` of /healthz and /readyz", DefaultText: "not served"},
				&cli.StringFlag{Name: "metrics-address", Usage: "`ADDRESS` of /metrics", DefaultText: "not served"},
				&cli.BoolFlag{Name: "leader-election", Usage: "let one of several replicas work, by a Lease in taskctl-system"},
			),
			Action: p.signals.outliveReaders(noArguments(p.operatorRun)),
		}},
	}
}

func (p *program) operatorRun(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	webhooks := c.String("webhook-address")
	if webhooks != "" && (c.String("tls-cert-file") == "" || c.String("tls-key-file") == "") {
		return usageError("the webhooks need --tls-cert-file and --tls-key-file")
	}
	config, err := p.clusterConfig(c)
	if err != nil {
		return err
	}
	log := partLog(p.env.Stderr, values.verbosity)
	options := operator.Options{
		Config:             config,
		Log:                log.WithName(supervisor.Operator),
		MetricsAddress:     c.String("metrics-address"),
		HealthProbeAddress: c.String("health-address"),
	}
	if c.Bool("leader-election") {
		options.LeaderElection = &operator.LeaderElection{Namespace: "taskctl-system", Name: "taskctl-operator"}
	}
	components := []lifecycle.Component{{
		Name:        supervisor.Operator,
		StopTimeout: 10 * time.Second,
		Run: func(ctx context.Context, ready func()) error {
			return operator.RunController(ctx, options, ready)
		},
	}}
	if webhooks != "" {
		certificate := &servingCertificate{certFile: c.String("tls-cert-file"), keyFile: c.String("tls-key-file")}
		components = append(components, lifecycle.Component{
			Name:        supervisor.Webhooks,
			StopTimeout: 5 * time.Second,
			Run: func(ctx context.Context, ready func()) error {
				listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", webhooks)
				if err != nil {
					return fmt.Errorf("opening --webhook-address: %w", err)
				}
				return operator.RunWebhooks(ctx, operator.WebhookOptions{
					Listener:       listener,
					GetCertificate: certificate.get,
					Log:            log.WithName(supervisor.Webhooks),
				}, ready)
			},
		})
	}
	return p.runParts(c.Context, components, func() { log.Info("ready") })
}

// runParts runs components until a signal, or one of them, ends them all.
func (p *program) runParts(ctx context.Context, components []lifecycle.Component, ready func()) error {
	group, err := lifecycle.New(components, lifecycle.Options{})
	if err != nil {
		return err
	}
	if err := group.Run(ctx, ready); err != nil {
		return err
	}
	return endedBySignal(ctx)
}
