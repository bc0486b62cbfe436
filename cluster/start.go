package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/taskctl-dev/taskctl/cluster/embedded"
	"github.com/taskctl-dev/taskctl/internal/lifecycle"
	"github.com/taskctl-dev/taskctl/internal/pki"
	"github.com/taskctl-dev/taskctl/storage/endpoint"
	"github.com/taskctl-dev/taskctl/storage/etcd"
)

// turn is held by the control plane that runs: klog and Kubernetes' feature
// gates exist once in a process, and so does this (docs/decisions/0606).
var turn = make(chan struct{}, 1)

// ControlPlane is a running control plane.
type ControlPlane struct {
	pki      *pki.PKI
	host     string
	cleanups []func() error // in the order in which they were added

	stop context.CancelFunc
	done chan struct{} // closed when all has stopped
	err  error         // why it stopped by itself; read after done
}

// Start starts a control plane and returns when it answers, its controllers
// run and the custom resources are served. ctx limits the start only; the
// control plane runs until Stop. After an error nothing is left behind.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	if err := embedded.CheckArgs(options.APIServerArgs); err != nil {
		return nil, err
	}
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("another control plane runs in this process, and one at a time can; it was not stopped: %w", ctx.Err())
	}
	c := &ControlPlane{done: make(chan struct{})}
	c.cleanups = append(c.cleanups, func() error { <-turn; return nil })
	if err := c.start(ctx, options); err != nil {
		if c.stop == nil {
			return nil, errors.Join(err, c.cleanUp())
		}
		// What went wrong is in the error that stopping reports.
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, options Options) error {
	dir, err := c.dir(options.Dir)
	if err != nil {
		return err
	}
	if c.pki, err = pki.Open(filepath.Join(dir, "pki"), pki.Options{}); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on the loopback address: %w", err)
	}
	c.cleanups = append(c.cleanups, func() error { _ = listener.Close(); return nil })
	c.host = "https://" + listener.Addr().String()
	components, err := c.components(dir, listener, options)
	if err != nil {
		return err
	}
	group, err := lifecycle.New(components, lifecycle.Options{})
	if err != nil {
		return err
	}
	restore := embedded.CaptureProcess(writerOrDiscard(options.Log), func(err error) { group.Fail("apiserver", err) })
	c.cleanups = append(c.cleanups, func() error { restore(); return nil })

	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	ready := make(chan struct{})
	go func() {
		defer close(c.done)
		c.err = group.Run(running, func() { close(ready) })
	}()
	select {
	case <-ready:
	case <-c.done:
		return errors.New("the control plane did not start")
	case <-ctx.Done():
		return fmt.Errorf("the control plane did not start in time: %w", ctx.Err())
	}
	return installCRDs(ctx, c.RESTConfig(), options.CRDDirs)
}

func (c *ControlPlane) components(dir string, listener net.Listener, options Options) ([]lifecycle.Component, error) {
	const limit = time.Minute
	components := []lifecycle.Component{{Name: "certificates", Run: c.pki.Run}}
	store := options.Storage
	if store == (endpoint.Endpoint{}) {
		socket, err := c.socket(dir)
		if err != nil {
			return nil, err
		}
		server := &etcd.Server{Dir: filepath.Join(dir, "etcd"), Socket: socket, Log: options.Log}
		store = server.Endpoint()
		components = append(components, lifecycle.Component{Name: "storage", StartTimeout: limit, StopTimeout: limit, Run: server.Run})
	} else {
		// There is nothing to start; those who need it are told that it is there.
		components = append(components, lifecycle.Component{Name: "storage", Run: func(ctx context.Context, ready func()) error {
			ready()
			<-ctx.Done()
			return nil
		}})
	}
	server := &embedded.APIServer{Listener: listener, Storage: store, PKI: c.pki, Args: options.APIServerArgs}
	manager := &embedded.ControllerManager{Host: c.host, PKI: c.pki, Log: options.Log}
	return append(components,
		lifecycle.Component{Name: "apiserver", Needs: []string{"certificates", "storage"}, StartTimeout: limit, StopTimeout: limit, Run: server.Run},
		lifecycle.Component{Name: "controller-manager", Needs: []string{"apiserver"}, StartTimeout: limit, StopTimeout: limit, Run: manager.Run},
	), nil
}

// Done is closed when the control plane has stopped, by Stop or by itself.
func (c *ControlPlane) Done() <-chan struct{} { return c.done }

// Stop stops controllers, API server and store, in this order, removes a
// temporary folder, and returns why the control plane had stopped before, if
// it had. It may be called once.
func (c *ControlPlane) Stop(ctx context.Context) error {
	c.stop()
	select {
	case <-c.done:
		return errors.Join(c.err, c.cleanUp())
	case <-ctx.Done():
		return fmt.Errorf("the control plane did not stop in time: %w", ctx.Err())
	}
}

// cleanUp undoes what start did outside of the components, last things first.
func (c *ControlPlane) cleanUp() error {
	var errs []error
	for i := len(c.cleanups) - 1; i >= 0; i-- {
		errs = append(errs, c.cleanups[i]())
	}
	return errors.Join(errs...)
}

// dir is where data goes.
func (c *ControlPlane) dir(given string) (string, error) {
	if given != "" {
		return given, os.MkdirAll(given, 0o700)
	}
	temporary, err := os.MkdirTemp("", "taskctl-cluster-")
	if err != nil {
		return "", err
	}
	c.cleanups = append(c.cleanups, func() error { return os.RemoveAll(temporary) })
	return temporary, nil
}

// socket is the path of the store's socket. Socket paths are short (107 bytes
// on Linux), and folders of tests are not, so it has a folder of its own.
func (c *ControlPlane) socket(dir string) (string, error) {
	path := filepath.Join(dir, "etcd.sock")
	if len(path) <= 100 {
		return path, nil
	}
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		if len(parent) > 60 {
			continue
		}
		folder, err := os.MkdirTemp(parent, "taskctl-")
		if err != nil {
			return "", err
		}
		c.cleanups = append(c.cleanups, func() error { return os.RemoveAll(folder) })
		return filepath.Join(folder, "etcd.sock"), nil
	}
	return "", fmt.Errorf("no folder for a socket has a short enough path: %s is too long, and so is %s", path, os.TempDir())
}
