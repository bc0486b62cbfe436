package kind

import (
	"context"
	"fmt"
	"io"
)

// ExportLogs writes kind's logs of the node into a folder: what the container
// said, its journal, and the logs of its Pods. A node that is stopped has only
// the first.
func (n *Node) ExportLogs(ctx context.Context, directory string) error {
	state, err := n.inspect(ctx)
	if err == nil {
		err = n.check(state)
	}
	if err != nil || !state.present {
		return err
	}
	log := &logger{out: io.Discard, progress: func(string) {}}
	if err := n.Engine.provider(log).CollectLogs(n.Cluster, directory); err != nil && state.running {
		return fmt.Errorf("collecting the logs of the node %s: %w", n.Name(), err)
	}
	return nil
}
