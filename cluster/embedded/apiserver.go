package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"github.com/taskctl-dev/taskctl/internal/pki"
	"github.com/taskctl-dev/taskctl/storage/endpoint"
)

// APIServer is a kube-apiserver with its aggregation layer and custom
// resources, to be run. Fill in the fields, then call Run.
type APIServer struct {
	// Listener is where it answers: a loopback address, opened by the caller
	// so that no other process can take the port meanwhile. Run closes it.
	Listener net.Listener
	// Storage is the etcd endpoint that holds the objects.
	Storage endpoint.Endpoint
	// PKI has the server's certificates and the authorities that it trusts.
	PKI *pki.PKI
	// Args are kube-apiserver's own flags, without dashes; a flag that is a
	// list may have several values. [CheckArgs] says which are allowed.
	Args map[string][]string
	// WrapCustomResourceStorage, when not nil, decorates the storage of custom
	// resources.
	WrapCustomResourceStorage func(generic.RESTOptionsGetter) generic.RESTOptionsGetter
}

// The API server's own stop: watches are told to end for the first second, and
// what is still open after the second is cut. Without the first limit a single
// open watch would hold the stop for a minute.
const (
	watchTerminationGracePeriod = time.Second
	shutdownTimeout             = 2 * time.Second
)

// Run starts the API server, calls ready once /readyz answers 200 and the
// namespace "default" is there, and stops it when ctx ends. The store must
// keep answering until Run has returned: the API server's last requests to it
// would wait for it otherwise.
func (s *APIServer) Run(ctx context.Context, ready func()) error {
	defer s.Listener.Close()
	server, err := s.build(ctx)
	if err != nil {
		return fmt.Errorf("kube-apiserver did not start: %w", err)
	}
	server.GenericAPIServer.ShutdownTimeout = shutdownTimeout
	prepared, err := server.PrepareRun()
	if err != nil {
		return fmt.Errorf("kube-apiserver did not start: %w", err)
	}
	probe, err := newReadyProbe(server.GenericAPIServer.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("kube-apiserver did not start: %w", err)
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	probed := make(chan struct{})
	go func() {
		defer close(probed)
		if probe.wait(ctx) == nil {
			ready()
		}
	}()
	err = prepared.Run(ctx)
	stopped := ctx.Err() != nil
	stop()
	<-probed
	if err == nil && !stopped {
		err = errors.New("it stopped by itself")
	}
	if err != nil {
		return fmt.Errorf("kube-apiserver failed: %w", err)
	}
	return nil
}

// build follows what kube-apiserver's own command does, without its flags,
// signal handler and process-wide log settings.
func (s *APIServer) build(ctx context.Context) (*aggregatorapiserver.APIAggregator, error) {
	if err := reachStore(ctx, s.Storage); err != nil {
		return nil, err
	}
	options, err := s.options()
	if err != nil {
		return nil, err
	}
	completed, err := options.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("complete the options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("options: %w", utilerrors.NewAggregate(errs))
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("configure: %w", err)
	}
	if s.WrapCustomResourceStorage != nil {
		extra := &config.ApiExtensions.ExtraConfig
		extra.CRDRESTOptionsGetter = s.WrapCustomResourceStorage(extra.CRDRESTOptionsGetter)
	}
	for _, generic := range []*genericapiserver.Config{
		config.KubeAPIs.ControlPlane.Generic,
		&config.ApiExtensions.GenericConfig.Config,
		&config.Aggregator.GenericConfig.Config,
	} {
		withoutLogCheck(generic)
		reportVersion(generic)
	}
	withoutBootstrapHooks(config)
	completedConfig, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("complete the configuration: %w", err)
	}
	server, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return nil, err
	}
	return server, addBootstrapHooks(server)
}

// withoutLogCheck removes the health check "log". It tells whether klog can
// write to its files, of which there are none here, and it starts a goroutine
// that never ends.
func withoutLogCheck(config *genericapiserver.Config) {
	for _, checks := range []*[]healthz.HealthChecker{&config.HealthzChecks, &config.LivezChecks, &config.ReadyzChecks} {
		// The three configurations share their slices: make new ones.
		var kept []healthz.HealthChecker
		for _, check := range *checks {
			if check.Name() != healthz.LogHealthz.Name() {
				kept = append(kept, check)
			}
		}
		*checks = kept
	}
}
