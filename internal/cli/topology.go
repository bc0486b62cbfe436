package cli

import (
	"cmp"
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// topologyFlag is --topology.
func topologyFlag() cli.Flag {
	return &cli.StringFlag{Name: "topology", Usage: "where objects are stored, by a topology `FILE` of HariKube; --storage names the database of what it leaves out"}
}

// readTopologyFlag takes --topology, if it is given, as the storage.
func readTopologyFlag(c *cli.Context, into *upConfig) (err error) {
	if c.String("topology") != "" {
		into.options.Storage, into.notices, err = readTopology(c, cmp.Or(into.spec, embeddedEtcd))
	}
	return err
}

// readTopology reads the file of --topology and the passwords that it names.
// spec is the database of what no backend matches. The notices are settings
// that have no effect.
func readTopology(c *cli.Context, spec string) (chosen config.Storage, notices []string, err error) {
	name := c.String("topology")
	chosen, notices, err = config.ReadTopology(name, config.Backend{Endpoint: spec})
	if err != nil {
		return chosen, nil, usageError("%w", err)
	}
	err = supervisor.CheckStorage(chosen)
	if err == nil {
		err = chosen.ReadPasswords(os.Getenv)
	}
	var wrong *config.BackendError
	switch {
	case err == nil:
		return chosen, notices, nil
	case errors.As(err, &wrong) && wrong.Line == 0:
		return chosen, nil, usageError("--storage, for what %s leaves out: %w", name, wrong.Err)
	case errors.As(err, &wrong):
		return chosen, nil, usageError("%s:%d: backends: %w", name, wrong.Line, wrong.Err)
	}
	return chosen, nil, usageError("%s: %w", name, err)
}

// refuseTwoTopologies refuses a file with a storage section beside --topology.
func refuseTwoTopologies(c *cli.Context, file config.Config) error {
	if c.String("topology") == "" || file.Storage.Line == 0 {
		return nil
	}
	return usageError("%s:%d: storage: --topology says the same: leave one of the two out", file.File, file.Storage.Line)
}
