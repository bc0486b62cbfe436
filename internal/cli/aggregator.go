package cli

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/aggregator"
	"github.com/taskctl-dev/taskctl/internal/lifecycle"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

func (p *program) aggregatorCommand() *cli.Command {
	return &cli.Command{
		Name:  "aggregator",
		Usage: "the aggregated API server alone, for a real cluster",
		Subcommands: []*cli.Command{{
			Name:        "run",
			Usage:       "serve the aggregated API, in the foreground",
			Description: "manifests/deploy has the Deployment that runs it in a cluster.",
			Flags:       append(partFlags(), aggregatorFlags()...),
			Action:      p.signals.outliveReaders(noArguments(p.aggregatorRun)),
		}},
	}
}

func aggregatorFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "address", Value: ":8443", Usage: "`ADDRESS` (HOST:PORT) to serve on"},
		&cli.StringFlag{
			Name:  "storage-endpoint",
			Usage: "`URL` (https://, http:// or unix://) of the etcd or the `taskctl storage serve` that keeps clustertasks and customtasks; without it these are not served",
		},
		&cli.StringFlag{Name: "storage-cafile", Usage: "`FILE` with the authority of the endpoint's certificate"},
		&cli.StringFlag{Name: "storage-certfile", Usage: "`FILE` with the client certificate for the endpoint"},
		&cli.StringFlag{Name: "storage-keyfile", Usage: "`FILE` with that certificate's key"},
	}
}

// aggregatorStorage is nil where no endpoint is given.
func aggregatorStorage(c *cli.Context) (*aggregator.Endpoint, error) {
	endpoint := aggregator.Endpoint{
		URL:      c.String("storage-endpoint"),
		CAFile:   c.String("storage-cafile"),
		CertFile: c.String("storage-certfile"),
		KeyFile:  c.String("storage-keyfile"),
	}
	if endpoint.URL != "" {
		return &endpoint, nil
	}
	if endpoint != (aggregator.Endpoint{}) {
		return nil, usageError("--storage-cafile, --storage-certfile and --storage-keyfile need --storage-endpoint")
	}
	return nil, nil
}

func (p *program) aggregatorRun(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	if c.String("tls-cert-file") == "" || c.String("tls-key-file") == "" {
		return usageError("the aggregated API needs --tls-cert-file and --tls-key-file")
	}
	endpoint, err := aggregatorStorage(c)
	if err != nil {
		return err
	}
	config, err := p.clusterConfig(c)
	if err != nil {
		return err
	}
	log := partLog(p.env.Stderr, values.verbosity)
	options := aggregator.Options{
		Config:   config,
		CertFile: c.String("tls-cert-file"),
		KeyFile:  c.String("tls-key-file"),
		Storage:  endpoint,
		Log:      log.WithName(supervisor.Aggregator),
		Listen: func(ctx context.Context) (net.Listener, error) {
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.String("address"))
			if err != nil {
				return nil, fmt.Errorf("opening --address: %w", err)
			}
			return listener, nil
		},
	}
	return p.runParts(c.Context, []lifecycle.Component{{
		Name:        supervisor.Aggregator,
		StopTimeout: 10 * time.Second,
		Run: func(ctx context.Context, ready func()) error {
			return aggregator.Run(ctx, options, ready)
		},
	}}, func() { log.Info("ready") })
}
