package cli

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/cluster/embedded"
	"github.com/taskctl-dev/taskctl/internal/config"
)

// readConfigFile reads the file of -f into the options.
func readConfigFile(c *cli.Context, into *upConfig) error {
	name := c.String("file")
	if name == "" {
		return nil
	}
	file, err := config.Read(name)
	if err != nil {
		return usageError("%w", err)
	}
	if err := checkSupported(file, c.IsSet("cluster"), c.IsSet("storage")); err != nil {
		return usageError("%w", err)
	}
	if err := embedded.CheckArgs(file.Cluster.APIServerArgs); err != nil {
		return usageError("%s:%d: cluster.apiServerArgs: %w", name, file.Cluster.Line, err)
	}
	into.options.APIServerArgs = file.Cluster.APIServerArgs
	return nil
}

// checkSupported refuses what a file asks for and this build does not have. A
// flag that says otherwise wins.
func checkSupported(file config.Config, clusterFlag, storageFlag bool) error {
	if file.Cluster.Driver == "kind" && !clusterFlag {
		return fmt.Errorf("%s:%d: cluster.driver: this build of taskctl has the embedded driver only: use auto or embedded", file.File, file.Cluster.Line)
	}
	if file.Cluster.HasKind {
		return fmt.Errorf("%s:%d: cluster.kind: this build of taskctl has the embedded driver only: leave the section out", file.File, file.Cluster.KindLine)
	}
	if file.Storage.Line == 0 || storageFlag {
		return nil
	}
	for i, backend := range file.Storage.Backends {
		if config.Scheme(backend.Endpoint) != "etcd" || i > 0 {
			return fmt.Errorf("%s:%d: storage.backends[%d]: this build of taskctl stores in one embedded etcd only: use a single backend with the endpoint etcd://", file.File, backend.Line, i)
		}
	}
	if len(file.Storage.Indexes) > 0 {
		return fmt.Errorf("%s:%d: storage.indexes[0]: this build of taskctl stores in etcd only, which keeps no indexes: leave the section out", file.File, file.Storage.Indexes[0].Line)
	}
	return nil
}

// flagWords are kube-apiserver's flags as words, sorted.
func flagWords(args map[string][]string) []string {
	var words []string
	for name, values := range args {
		for _, value := range values {
			words = append(words, "--"+name+"="+value)
		}
	}
	slices.Sort(words)
	return words
}
