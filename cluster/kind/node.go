package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ClusterName is the kind cluster of an appliance.
func ClusterName(appliance string) string {
	if appliance == "taskctl" {
		return appliance
	}
	return "taskctl-" + appliance
}

// nodeName is the container and the Node of a cluster of one node, as kind
// names them.
func nodeName(cluster string) string { return cluster + "-control-plane" }

// stopSeconds is how long a node may take to stop; then it is killed. What has
// to last is in the store, which outlives it.
const stopSeconds = 10

// Node is the container that a cluster's name means.
type Node struct {
	Engine *Engine
	// Cluster is kind's name of the cluster.
	Cluster string
	// SocketDir is the folder that is mounted into our own node: its mark.
	SocketDir string
}

// nodeState is what the engine says of the container.
type nodeState struct {
	present bool
	id      string
	ours    bool
	running bool
	image   string
	port    int // at which the API server is published on this machine
}

// Name is the container, and the Node.
func (n *Node) Name() string { return nodeName(n.Cluster) }

// inspect looks at the container. That there is none is no error; not to know
// is one.
func (n *Node) inspect(ctx context.Context) (nodeState, error) {
	text, err := n.Engine.run(ctx, "container", "inspect", n.Name())
	if says(err, "no such container", "no such object", "no container with name") {
		return nodeState{}, nil
	}
	if err != nil {
		return nodeState{}, fmt.Errorf("asking %s for the container %s: %w", n.Engine.Name, n.Name(), n.Engine.explain(err))
	}
	var found []struct {
		ID    string `json:"Id"`
		State struct{ Running, Restarting bool }
		// Config.Image is the name that was asked for, Image its id.
		Config     struct{ Image string }
		Mounts     []struct{ Source, Destination string }
		HostConfig struct {
			PortBindings map[string][]struct{ HostPort string }
		}
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil || len(found) == 0 {
		return nodeState{}, fmt.Errorf("%s describes the container %s in a way that can't be understood: %w", n.Engine.Name, n.Name(), err)
	}
	container := found[0]
	state := nodeState{present: true, id: container.ID, running: container.State.Running || container.State.Restarting, image: container.Config.Image}
	for _, mount := range container.Mounts {
		state.ours = state.ours || mount.Destination == socketMount && mount.Source == n.SocketDir
	}
	for _, binding := range container.HostConfig.PortBindings[apiServerPort+"/tcp"] {
		state.port, _ = strconv.Atoi(binding.HostPort)
	}
	return state, nil
}

// check refuses a container of that name that is not ours.
func (n *Node) check(state nodeState) error {
	if !state.present || state.ours {
		return nil
	}
	return fmt.Errorf("there is a kind cluster %q already that is not this appliance's, and it is not touched: choose another --name, or delete it with `kind delete cluster --name %s`", n.Cluster, n.Cluster)
}

// start starts the container that was stopped.
func (n *Node) start(ctx context.Context, port int) error {
	_, err := n.Engine.run(ctx, "start", n.Name())
	if says(err, "address already in use", "port is already allocated") {
		return fmt.Errorf("port %d of the node is taken by another program: end that one, or make a new node with --recreate, which keeps the objects", port)
	}
	if err != nil {
		return fmt.Errorf("starting the node %s: %w; make a new one with --recreate, which keeps the objects", n.Name(), err)
	}
	return nil
}

// Stop stops the container, if it is ours and runs.
func (n *Node) Stop(ctx context.Context) error {
	state, err := n.inspect(ctx)
	if err != nil || !state.ours || !state.running {
		return err
	}
	if err := n.endedBy(ctx, state, "stop", "-t", strconv.Itoa(stopSeconds), n.Name()); err != nil {
		return fmt.Errorf("stopping the node %s: %w", n.Name(), err)
	}
	return nil
}

// Remove deletes the container with its volumes, if it is ours, and our network
// if nobody else uses it.
func (n *Node) Remove(ctx context.Context) error {
	if err := n.removeContainer(ctx); err != nil {
		return err
	}
	return n.Engine.removeNetwork(ctx)
}

func (n *Node) removeContainer(ctx context.Context) error {
	state, err := n.inspect(ctx)
	if err != nil || !state.ours {
		return err
	}
	if err := n.endedBy(ctx, state, "rm", "--force", "--volumes", n.Name()); err != nil && !says(err, "no such container") {
		return fmt.Errorf("deleting the node %s: %w", n.Name(), err)
	}
	return nil
}

// withoutRestart keeps the engine from starting the node by itself, at boot or
// after a failure: its store would not be there.
func (n *Node) withoutRestart(ctx context.Context) error {
	if _, err := n.Engine.run(ctx, "update", "--restart=no", n.Name()); err != nil {
		return fmt.Errorf("setting the restart policy of the node %s: %w", n.Name(), err)
	}
	return nil
}

// awaitEnd blocks until the container has stopped, which is an error unless
// ctx has ended.
func (n *Node) awaitEnd(ctx context.Context) error {
	_, err := n.Engine.run(ctx, "wait", n.Name())
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("the engine stopped answering: %w", n.Engine.explain(err))
	}
	return fmt.Errorf("the node %s was stopped from outside", n.Name())
}

// lastLines are the end of what the node says: its kubelet's errors if there
// are any, else its own output.
func (n *Node) lastLines(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	// Best effort: it is called because something failed already.
	text, err := n.Engine.run(ctx, "exec", n.Name(), "journalctl", "--no-pager", "--output=cat", "-u", "kubelet.service", "-u", "containerd.service", "--lines=8")
	if err != nil || strings.Contains(text, "-- No entries --") {
		text, _ = n.Engine.run(ctx, "logs", "--tail", "8", n.Name())
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// exec runs a program in the node.
func (n *Node) exec(ctx context.Context, limit time.Duration, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return n.Engine.run(ctx, append([]string{"exec", n.Name()}, words...)...)
}
