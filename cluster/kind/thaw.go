package kind

import (
	"context"
	"time"
)

// thawLimit is how long the container that thaws may take.
const thawLimit = 20 * time.Second

// endedBy runs a command of the engine that ends the container, and once more
// after thawing it, if it did not end.
//
// On cgroup v1 a frozen process can't be killed. runc freezes a container for a
// moment while it changes its limits; when the node is stopped in this moment,
// nobody thaws it again, and the engine waits for the node in vain.
func (n *Node) endedBy(ctx context.Context, state nodeState, words ...string) error {
	_, err := n.Engine.run(ctx, words...)
	if err == nil || !n.Engine.CgroupV1 || !says(err, "did not receive an exit event") {
		return err
	}
	if thawErr := n.thaw(ctx, state); thawErr != nil {
		return err // which says more
	}
	_, err = n.Engine.run(ctx, words...)
	return err
}

// thaw thaws all that is in the container, from a container that sees the
// machine's own cgroups: this process may lack the rights.
func (n *Node) thaw(ctx context.Context, state nodeState) error {
	ctx, cancel := context.WithTimeout(ctx, thawLimit)
	defer cancel()
	script := "find /host/freezer -path '*" + state.id + "*' -name freezer.state | while read -r file; do echo THAWED >\"$file\"; done"
	_, err := n.Engine.run(ctx, "run", "--rm", "--privileged", "--cgroupns", "host", "--network", "none", "--pull", "never",
		"--volume", "/sys/fs/cgroup:/host", "--entrypoint", "/bin/sh", state.image, "-c", script)
	return err
}
