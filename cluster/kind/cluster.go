package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/pki"
	"github.com/taskctl-dev/taskctl/storage"
)

// Cluster is a node that stores in an endpoint of this process. Fill in the
// fields, call Prepare, then Run and RunNode as components.
type Cluster struct {
	Node Node
	// Image is the node image, which the engine has.
	Image string
	// Port is the API server's port on this machine, for a new node. Prepare
	// sets it to that of a node that is there.
	Port int
	// Socket is the path of the store's socket, in Node.SocketDir.
	Socket string
	// PKI has the authorities that the node gets.
	PKI *pki.PKI
	// Section is cluster.kind of the configuration file.
	Section config.KindSection
	// APIServerArgs are kube-apiserver's own flags, without dashes.
	APIServerArgs map[string][]string
	// Recreate makes a new node although one is there, or was.
	Recreate bool
	// Known says that a node was made for this store before: that it is gone
	// needs Recreate.
	Known bool
	// Used says that some node for this store was complete: the network's
	// objects, which kind can only make once, are in it.
	Used bool
	// KubeconfigFile is a path for the file that kind insists on; it is deleted.
	KubeconfigFile string
	// Created is called when the node was made; an error fails the start.
	Created func() error
	// Progress is told what is going on while a node is made or started.
	Progress func(string)
	// Log gets what kind and, after a failure, the node say.
	Log io.Writer

	create  *v1alpha4.Cluster // nil: the node that is there is started
	made    chan struct{}     // closed when the node is complete
	started time.Time         // when Run began
}

// Prepare looks at what is there, before the store runs: a node that is running
// is stopped, because it lost its store, and one that is not to be used again is
// deleted. It decides whether Run makes a node or starts one.
func (c *Cluster) Prepare(ctx context.Context) error {
	c.made = make(chan struct{})
	state, err := c.Node.inspect(ctx)
	if err != nil {
		return err
	}
	if err := c.Node.check(state); err != nil {
		return err
	}
	switch {
	case state.present && c.Known && !c.Recreate:
		if c.Port != 0 && c.Port != state.port {
			return fmt.Errorf("the node answers on port %d, and that can't be changed: leave --port out, or make a new node with --recreate, which keeps the objects", state.port)
		}
		c.Port = state.port
		return c.Node.Stop(ctx)
	case !state.present && c.Known && !c.Recreate:
		return fmt.Errorf("the node %s is gone, and the objects are still there: make a new node for them with --recreate, or delete them with taskctl down --purge", c.Node.Name())
	case state.present:
		// Not to be used again, or not complete: its making was cut short.
		c.Progress("deleting the old node")
		if err := c.Node.removeContainer(ctx); err != nil {
			return err
		}
	}
	facts, err := c.Node.Engine.probe(ctx, c.Image, c.Node.SocketDir)
	if err != nil {
		return err
	}
	if err := c.Node.Engine.useNetwork(); err != nil {
		return err
	}
	c.create, err = c.newConfig(facts)
	return err
}

// Creates says, after Prepare, whether a new node will be made: whoever owns
// its port has to give it up then.
func (c *Cluster) Creates() bool { return c.create != nil }

// SetPort says at which port of this machine a new node answers.
func (c *Cluster) SetPort(port int) {
	c.Port = port
	c.create.Networking.APIServerPort = int32(port)
}

// Run makes or starts the node, calls ready once its API server answers, and
// stops the node when ctx ends. When making it fails, or is cut short, nothing
// of it stays. endpoint is the store, which must be running.
func (c *Cluster) Run(ctx context.Context, endpoint storage.Endpoint, ready func()) error {
	c.started = time.Now()
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	if c.create == nil {
		c.Progress("node: starting")
		if err := c.Node.start(ctx, c.Port); err != nil {
			return err
		}
		close(c.made)
		go func() { ended <- c.Node.awaitEnd(running) }()
	} else {
		if err := clearOldNode(ctx, endpoint, c.Node.Name()); err != nil {
			return err
		}
		go func() { ended <- c.makeNode(running) }()
	}
	server, err := newAPIServerProbe(c.PKI, c.Port)
	if err != nil {
		return err
	}
	answered := make(chan bool, 1)
	go func() {
		err := server.await(running)
		if err == nil {
			ready()
		}
		answered <- err == nil
	}()
	select {
	case <-ctx.Done():
		err = nil
	case err = <-ended:
		ended <- nil
	}
	stop()
	if !<-answered {
		c.tell(context.WithoutCancel(ctx))
	}
	// The node is stopped however this ends: without its store it only fails.
	return errors.Join(err, c.end(context.WithoutCancel(ctx), ended))
}

// end stops a node that is complete, and removes one that is not.
func (c *Cluster) end(ctx context.Context, ended <-chan error) error {
	select {
	case <-c.made:
		err := c.Node.Stop(ctx)
		<-ended
		return err
	default:
	}
	// kind can't be told to stop. Without its container it fails by itself,
	// and it may be about to make it.
	for {
		_ = c.Node.removeContainer(ctx) // Remove says what is wrong
		select {
		case <-ended:
			return c.Node.Remove(ctx)
		case <-time.After(removeInterval):
		}
	}
}

// removeInterval is how often the container of a creation that is to end is
// looked for.
const removeInterval = 300 * time.Millisecond

// tell writes the last words of a node that did not become ready into the log.
func (c *Cluster) tell(ctx context.Context) {
	for _, line := range c.Node.lastLines(ctx) {
		fmt.Fprintf(c.Log, "node: %s\n", line)
	}
}
