package kind

import (
	"context"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/exec"
)

// provider is kind's library on this engine.
func (e *Engine) provider(log *logger) *cluster.Provider {
	option := cluster.ProviderWithDocker()
	switch e.Name {
	case "nerdctl":
		option = cluster.ProviderWithNerdctl(e.Name)
	case "podman":
		option = cluster.ProviderWithPodman()
	}
	return cluster.NewProvider(option, cluster.ProviderWithLogger(log))
}

// makeNode makes the node and then waits until it ends, which is an error
// unless ctx has ended.
func (c *Cluster) makeNode(ctx context.Context) error {
	defer os.Remove(c.KubeconfigFile) //nolint:errcheck // there may be none
	log := &logger{out: c.Log, progress: c.Progress}
	provider := c.Node.Engine.provider(log)
	create := func() error {
		return provider.Create(c.Node.Cluster,
			cluster.CreateWithV1Alpha4Config(c.create),
			cluster.CreateWithNodeImage(c.Image),
			cluster.CreateWithKubeconfigPath(c.KubeconfigFile),
			// What it says is wanted after a failure; we delete it.
			cluster.CreateWithRetain(true),
		)
	}
	err := create()
	if err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "could not find a log line") {
		// kind gives systemd in the node 30 s, whatever the machine is doing.
		log.Warn("systemd in the node was slow; trying once more")
		if err := c.Node.removeContainer(ctx); err != nil {
			return err
		}
		err = create()
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return c.explainCreate(ctx, err)
	}
	if err := c.Node.withoutRestart(ctx); err != nil {
		return err
	}
	if err := c.Created(); err != nil {
		return err
	}
	close(c.made)
	return c.Node.awaitEnd(ctx)
}

// explainCreate says what to do about kind's errors.
func (c *Cluster) explainCreate(ctx context.Context, err error) error {
	output := err.Error()
	if failed := exec.RunErrorForError(err); failed != nil {
		output += "\n" + string(failed.Output)
		fmt.Fprintf(c.Log, "%s\n", failed.Output)
	}
	output += "\n" + strings.Join(c.Node.lastLines(ctx), "\n")
	switch lower := strings.ToLower(output); {
	case strings.Contains(lower, "too many open files"), strings.Contains(lower, "inotify"):
		return fmt.Errorf("making the node: this machine's limits of inotify are used up: raise them (sudo sysctl fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288), or use --cluster embedded")
	case strings.Contains(lower, "needs to be delegated"), strings.Contains(lower, "delegate=yes"):
		return fmt.Errorf("making the node: %w", notDelegated(c.Node.Engine.Name))
	case strings.Contains(lower, "address already in use"), strings.Contains(lower, "port is already allocated"):
		return fmt.Errorf("making the node: a port that it wants on this machine is taken by another program (%s): choose another with --port, or in cluster.kind.extraPortMappings", lastLine(string(output)))
	case strings.Contains(lower, "no space left on device"):
		return fmt.Errorf("making the node: the disk of %s is full: make room, for example with %s system prune", c.Node.Engine.Name, c.Node.Engine.Name)
	case strings.Contains(lower, "could not find an available"), strings.Contains(lower, "address pools have been fully subnetted"):
		return fmt.Errorf("making the node: %s has no free subnet for the network %s: remove networks that nobody uses with %s network prune", c.Node.Engine.Name, networkName, c.Node.Engine.Name)
	}
	return fmt.Errorf("making the node: %w", err)
}
