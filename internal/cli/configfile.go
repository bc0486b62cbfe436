package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/cluster/embedded"
	"github.com/taskctl-dev/taskctl/cluster/kind"
	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// readConfigFile reads the file of -f into the options.
func readConfigFile(c *cli.Context, into *upConfig) error {
	name := c.String("file")
	if name == "" {
		return readTopologyFlag(c, into)
	}
	file, err := config.Read(name)
	if err != nil {
		return usageError("%w", err)
	}
	if err := checkSupported(file, c.IsSet("storage")); err != nil {
		return usageError("%w", err)
	}
	if err := embedded.CheckArgs(file.Cluster.APIServerArgs); err != nil {
		return usageError("%s:%d: cluster.apiServerArgs: %w", name, file.Cluster.Line, err)
	}
	into.options.APIServerArgs = file.Cluster.APIServerArgs
	into.options.Kind.Section = file.Cluster.Kind
	if err := kind.CheckSection(file.Cluster.Kind); err != nil {
		return usageError("%s:%d: %w", name, file.Cluster.Kind.Line, err)
	}
	if file.Cluster.Driver != "" && !c.IsSet("cluster") {
		into.cluster = file.Cluster.Driver
	}
	if err := refuseTwoTopologies(c, file); err != nil {
		return err
	}
	if err := readTopologyFlag(c, into); err != nil || c.String("topology") != "" || c.IsSet("storage") {
		return err
	}
	into.options.Storage, err = readStorage(file)
	return err
}

// checkSupported refuses what a file asks for and this build does not have. A
// flag that says otherwise wins.
func checkSupported(file config.Config, storageFlag bool) error {
	if file.Storage.Line == 0 || storageFlag {
		return nil
	}
	if len(file.Storage.Indexes) > 0 {
		return fmt.Errorf("%s:%d: storage.indexes[0]: this build of taskctl keeps no indexes of its own: leave the section out", file.File, file.Storage.Indexes[0].Line)
	}
	return nil
}

// readStorage takes the storage section of a file and reads its passwords.
func readStorage(file config.Config) (config.Storage, error) {
	chosen := file.Storage
	err := supervisor.CheckStorage(chosen)
	if err == nil {
		err = chosen.ReadPasswords(os.Getenv)
	}
	var wrong *config.BackendError
	switch {
	case err == nil:
		return chosen, nil
	case errors.As(err, &wrong):
		return chosen, usageError("%s:%d: %w", file.File, wrong.Line, err)
	case len(chosen.Backends) == 1:
		return chosen, usageError("%s:%d: storage.backends[0]: %w", file.File, chosen.Backends[0].Line, err)
	}
	return chosen, usageError("%s:%d: storage: %w", file.File, chosen.Line, err)
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
