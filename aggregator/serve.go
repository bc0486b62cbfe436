package aggregator

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/taskctl-dev/taskctl/aggregator/stored"
)

// lastFrames is how long connections stay open after the last request has
// ended, so that the end of its answer is still sent.
const lastFrames = 50 * time.Millisecond

// serve waits until everything behind the server can answer, then opens the
// listener and serves until ctx ends.
func (a *aggregator) serve(ctx context.Context, ready func()) error {
	authorizer, err := authorization(a.clients.kubernetes)
	if err != nil {
		return err
	}
	server, err := newServer(serverOptions{
		options:    a.options,
		parts:      parts{clients: a.clients, authorizer: authorizer, combined: a.view, searcher: a.searcher},
		clients:    a.clients,
		proxy:      a.proxy,
		authorizer: authorizer,
		numbers:    a.numbers,
		checks:     a.checks(),
	})
	if err != nil {
		return err
	}
	prepared := server.PrepareRun()

	group, running := errgroup.WithContext(ctx)
	for _, kind := range server.stored {
		a.relate(running, group, kind.Relations)
		group.Go(guard("the deletion of orphans", func() error {
			a.deleteOrphans(running, kind.Resource)
			return nil
		}))
	}
	for _, kind := range server.kinds {
		if kind.Run != nil {
			group.Go(guard("what feeds a kind", func() error {
				kind.Run(running)
				return nil
			}))
		}
	}
	group.Go(guard("the API server", func() error { return a.answer(running, server, prepared.RunWithContext, ready) }))
	return group.Wait()
}

// relate runs the relations controller of one kind.
func (a *aggregator) relate(ctx context.Context, group *errgroup.Group, relations *stored.Relations) {
	name := "the relations of " + relations.Name()
	group.Go(guard(name, func() error {
		defer relations.Stop()
		relations.Follow(ctx)
		return nil
	}))
	for range stored.StatusWriters {
		group.Go(guard(name, func() error {
			relations.Settle(ctx, a.options.Log)
			return nil
		}))
	}
}

// deleteOrphans deletes, at the start, what is in namespaces that were deleted
// while the aggregator did not run. It tries until it succeeds.
func (a *aggregator) deleteOrphans(ctx context.Context, resource *stored.REST) {
	exists := func(ctx context.Context, namespace string) (bool, error) {
		_, err := a.clients.kubernetes.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	}
	err := poll(ctx, func(ctx context.Context) error {
		cleared, err := resource.DeleteOrphans(ctx, exists)
		if cleared > 0 {
			a.options.Log.Info("Deleted what was left of namespaces that were deleted meanwhile", "resource", resource.Name(), "namespaces", cleared)
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		a.options.Log.Error(err, "What is left of deleted namespaces could not be deleted")
	}
}

// answer opens the listener once everything behind it can answer, and serves
// until ctx ends.
func (a *aggregator) answer(ctx context.Context, server *built, run func(context.Context) error, ready func()) error {
	config := server.config
	listener, err := a.listen(ctx, append(config.ReadyzChecks, synced(server)...))
	if err != nil {
		abandon(server.GenericAPIServer, config)
		return err
	}
	tracked := track(listener)
	defer tracked.Close()
	config.SecureServing.Listener = tracked
	a.options.Log.Info("Serving the aggregated API", "address", listener.Addr().String())

	group, running := errgroup.WithContext(ctx)
	stopped := make(chan struct{})
	group.Go(guard("the API server", func() error {
		defer close(stopped)
		return run(running)
	}))
	group.Go(func() error {
		<-running.Done()
		cutWhenIdle(tracked, config, stopped)
		return nil
	})
	group.Go(func() error {
		if err := probe(running, listener.Addr(), a.options.CertFile, a.options.KeyFile); err != nil {
			return err
		}
		ready()
		return nil
	})
	return group.Wait()
}

// synced are the checks of what is known by the time that the port is opened,
// and stays so.
func synced(server *built) []healthz.HealthChecker {
	var checks []healthz.HealthChecker
	for _, kind := range server.stored {
		relations := kind.Relations
		checks = append(checks, healthz.NamedCheck("relations-of-"+relations.Name(), func(*http.Request) error {
			if !relations.Synced() {
				return fmt.Errorf("not all %s are listed yet", relations.Name())
			}
			return nil
		}))
	}
	for i, kind := range server.kinds {
		if kind.Ready != nil {
			checks = append(checks, healthz.NamedCheck(fmt.Sprintf("kind-%d", i), func(*http.Request) error { return kind.Ready() }))
		}
	}
	return checks
}

// abandon releases what a server that never runs holds.
func abandon(server *genericapiserver.GenericAPIServer, config *genericapiserver.Config) {
	server.Destroy()
	if controller, ok := config.SecureServing.Cert.(dynamiccertificates.ControllerRunner); ok {
		// A run that ends at once shuts its queue down.
		ended, end := context.WithCancel(context.Background())
		end()
		controller.Run(ended, 1)
	}
}

func (a *aggregator) listen(ctx context.Context, checks []healthz.HealthChecker) (net.Listener, error) {
	if err := a.wait(ctx, checks); err != nil {
		return nil, err
	}
	listener, err := a.options.Listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the aggregator's port: %w", err)
	}
	return listener, nil
}

// cutWhenIdle ends the connections of a server that stops. Left to itself it
// waits for a second after it has said goodbye to idle HTTP/2 connections, and
// for a minute for a client that doesn't read its answer.
func cutWhenIdle(tracked *connections, config *genericapiserver.Config, stopped <-chan struct{}) {
	for _, pause := range []struct {
		until <-chan struct{}
		limit time.Duration
	}{
		{config.DrainedNotify(), shutdownTimeout},
		{stopped, lastFrames},
	} {
		timer := time.NewTimer(pause.limit)
		select {
		case <-pause.until:
		case <-timer.C:
		}
		timer.Stop()
	}
	tracked.cut()
}
