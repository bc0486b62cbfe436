package kind

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	err = n.Engine.provider(log).CollectLogs(n.Cluster, directory)
	// kind runs a dozen commands, and one that the image lacks fails the whole:
	// what the others wrote is worth having.
	written, readErr := os.ReadDir(filepath.Join(directory, n.Name()))
	if err != nil && (readErr != nil || len(written) == 0) {
		return fmt.Errorf("collecting the logs of the node %s: %w", n.Name(), err)
	}
	return nil
}
