package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/taskctl-dev/taskctl/cluster/embedded"
	"github.com/taskctl-dev/taskctl/cluster/kind"
	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
)

// KindOptions are for the driver kind.
type KindOptions struct {
	// Image is the node image; "" is one that fits.
	Image string
	// Section is cluster.kind of the configuration file.
	Section config.KindSection
	// Recreate makes a new node over the objects that are there.
	Recreate bool
}

// prepareNode finds engine and image, pulls the image if need be, and looks at
// the node that may be there. It is not limited by Wait: how long a pull takes
// is not ours to say.
func (a *Appliance) prepareNode(ctx context.Context) error {
	options, recorded := a.options.Kind, a.folder.State().Node
	if endpoint := a.store.Endpoint().URL; !strings.HasPrefix(endpoint, "unix://") {
		return fmt.Errorf("the node reaches a store by a unix socket, and this one is at %s: use --cluster embedded, or another --storage", endpoint)
	}
	known := recorded != nil && recorded.Complete
	engine, image, err := a.engine(ctx, recorded)
	if err != nil {
		return err
	}
	settings, err := a.nodeSettings()
	if err != nil {
		return err
	}
	if known && !options.Recreate {
		if options.Image != "" && options.Image != recorded.Image {
			return fmt.Errorf("the node was made from %s, and not from %s: leave --kind-image out, or make a new node with --recreate, which keeps the objects", recorded.Image, options.Image)
		}
		if settings != "" && settings != recorded.Settings {
			return errors.New("the node was made with another cluster.kind or cluster.apiServerArgs: make a new node with --recreate, which keeps the objects")
		}
	}
	a.cluster = &kind.Cluster{
		Node:           kind.Node{Engine: engine, Cluster: kind.ClusterName(a.options.Name), SocketDir: a.folder.State().SocketDir},
		Image:          image,
		Port:           a.options.Port,
		Socket:         a.folder.EtcdSocket(),
		PKI:            a.pki,
		Section:        options.Section,
		APIServerArgs:  a.options.APIServerArgs,
		Recreate:       options.Recreate,
		Known:          known,
		Used:           recorded != nil && recorded.Used,
		KubeconfigFile: filepath.Join(a.folder.Path, ".kind-kubeconfig"),
		Created:        a.nodeCreated,
		Progress:       a.progress,
		Log:            a.logs.Writer(APIServer),
	}
	if err := a.cluster.Prepare(ctx); err != nil {
		return err
	}
	if a.cluster.Creates() {
		// The engine will open the port; only its number is chosen here.
		listener, err := a.listen(ctx, loopback, APIServer, a.options.Port)
		if err != nil {
			return err
		}
		a.cluster.SetPort(portOf(listener))
		if err := listener.Close(); err != nil {
			return err
		}
		node := &datadir.Node{Engine: engine.Name, Cluster: a.cluster.Node.Cluster, Image: image, Settings: settings, Used: recorded != nil && recorded.Used}
		if err := a.folder.Update(func(s *datadir.State) { s.Node = node }); err != nil {
			return err
		}
	}
	a.server = kind.URL(a.cluster.Port)
	return nil
}

// engine is the engine to use and, for a new node, its image, which it has.
func (a *Appliance) engine(ctx context.Context, recorded *datadir.Node) (*kind.Engine, string, error) {
	if recorded != nil && recorded.Complete && !a.options.Kind.Recreate {
		engine, err := kind.FindEngine(ctx, recorded.Engine)
		return engine, recorded.Image, err
	}
	engine, err := kind.FindEngine(ctx, "")
	if err != nil {
		return nil, "", err
	}
	image, present, err := engine.ChooseImage(ctx, a.options.Kind.Image, embedded.Version)
	if err != nil {
		return nil, "", err
	}
	if !present {
		a.progress("pulling " + image)
		if err := engine.Pull(ctx, image, a.progress); err != nil {
			return nil, "", err
		}
	}
	return engine, image, nil
}

// nodeSettings are what a node can't change any more; "" is nothing unusual.
func (a *Appliance) nodeSettings() (string, error) {
	if a.options.Kind.Section.IsEmpty() && len(a.options.APIServerArgs) == 0 {
		return "", nil
	}
	text, err := json.Marshal(map[string]any{"kind": a.options.Kind.Section, "apiServerArgs": a.options.APIServerArgs})
	return string(text), err
}

func (a *Appliance) nodeCreated() error {
	return a.folder.Update(func(s *datadir.State) { s.Node.Complete, s.Node.Used = true, true })
}

// runNodeAPIServer is the Run of the API server that is in a node.
func (a *Appliance) runNodeAPIServer(ctx context.Context, ready func()) error {
	return a.cluster.Run(ctx, a.store.Endpoint(), ready)
}

// reached says where to open the ports of webhooks and aggregated API, and how
// the API server means them.
func (a *Appliance) reached(ctx context.Context) (kind.Reach, error) {
	if a.cluster == nil {
		return kind.Reach{Listen: loopback, Dial: netip.MustParseAddr(loopback)}, nil
	}
	return a.cluster.Reach(ctx)
}

// RemoveNode deletes the node that a folder's appliance had, with its volumes
// and, if nobody else uses it, our network. It does nothing for other drivers.
func RemoveNode(ctx context.Context, state datadir.State) error {
	node, err := NodeOf(ctx, state)
	if node == nil || err != nil {
		return err
	}
	return node.Remove(ctx)
}

// StopNode stops the node that an appliance left running when it was killed.
func StopNode(ctx context.Context, state datadir.State) error {
	node, err := NodeOf(ctx, state)
	if node == nil || err != nil {
		return err
	}
	return node.Stop(ctx)
}

// NodeOf is the node that a folder's appliance has. It is nil where there is
// none: none was made, or its engine was removed from this machine.
func NodeOf(ctx context.Context, state datadir.State) (*kind.Node, error) {
	if state.Node == nil {
		return nil, nil
	}
	if _, err := exec.LookPath(state.Node.Engine); err != nil {
		return nil, nil
	}
	engine, err := kind.FindEngine(ctx, state.Node.Engine)
	if err != nil {
		return nil, fmt.Errorf("the node of %s can't be reached: %w", state.Name, err)
	}
	return &kind.Node{Engine: engine, Cluster: state.Node.Cluster, SocketDir: state.SocketDir}, nil
}
