package cli

import (
	"context"
	"fmt"

	"github.com/taskctl-dev/taskctl/cluster/embedded"
	"github.com/taskctl-dev/taskctl/cluster/kind"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// auto is the driver of --cluster that takes what the folder was made with, or
// what this machine offers.
const auto = "auto"

func checkDriver(driver string) error {
	switch driver {
	case auto, supervisor.EmbeddedDriver, supervisor.KindDriver:
		return nil
	}
	return usageError("the driver %q is not known: use --cluster auto, embedded or kind", driver)
}

// keptDriver is the driver that the folder was made with, "" if none. To ask
// for the other one is refused: it could not read the objects that are there,
// or would leave a node behind.
func keptDriver(config *upConfig, folder *datadir.Folder) (string, error) {
	state := folder.State()
	asked := config.cluster
	if folder.Fresh() || state.Driver == "" {
		return "", nil
	}
	if asked == auto || asked == state.Driver {
		return state.Driver, nil
	}
	return "", fmt.Errorf("the data folder %s was made with --cluster %s: leave --cluster out, choose another --name, or delete it first with taskctl down --purge%s",
		folder.Path, state.Driver, config.nameFlag())
}

// decideDriver completes config for a folder without a driver, whose sockets
// are prepared. One line says what auto chose, why, and how to get the other.
func decideDriver(ctx context.Context, config *upConfig, folder *datadir.Folder, notice func(string)) error {
	driver := config.cluster
	if driver == auto {
		engine, image, why := kind.Available(ctx, config.options.Kind.Image, embedded.Version, folder.State().SocketDir)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if why == nil {
			driver = supervisor.KindDriver
			notice(fmt.Sprintf("a kind cluster, because %s has %s; --cluster embedded is faster, and without nodes", engine, image))
		} else {
			driver = supervisor.EmbeddedDriver
			notice(fmt.Sprintf("an embedded cluster without nodes, because %s; for nodes: --cluster kind", kind.Reason(why)))
		}
	}
	config.setDriver(driver)
	return nil
}

func (c *upConfig) setDriver(driver string) {
	c.options.Driver = driver
	c.options.Settings["cluster"] = driver
}

// recreatesNode says that --recreate means the node alone: the objects of a
// kind cluster are not in it.
func recreatesNode(config *upConfig, folder *datadir.Folder) bool {
	return config.recreate && !folder.Fresh() && folder.State().Driver == supervisor.KindDriver
}

// halfMade says that a node was begun for the folder and never complete: there
// is nothing in the folder that anybody could miss, and what there is hinders.
func halfMade(state datadir.State) bool { return state.Node != nil && !state.Node.Used }
