package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

const (
	defaultConcurrency   = 32
	namespaceConcurrency = 4  // namespaces at a time
	deleteConcurrency    = 32 // Tasks of one namespace

	// stopLimit bounds how long a reconciliation in flight may hold up the
	// stop. Its requests are cancelled when the stop begins.
	stopLimit = 5 * time.Second

	// reconcileLimit frees a worker from an API server that does not answer.
	reconcileLimit = time.Minute

	// A Task that fails is tried again after retryFirst, then after twice the
	// time of the attempt before, up to retryLast.
	retryFirst = 20 * time.Millisecond
	retryLast  = time.Minute
)

// Options say where and how a controller runs. Config is required.
type Options struct {
	// Config is the cluster and the operator's identity in it. Without a limit
	// of its own (QPS 0) it gets none: the API server's fairness protects it.
	Config *rest.Config
	// Log defaults to no logging.
	Log logr.Logger
	// Clock says what time it is; the default is the real one. Waiting is done
	// in real time.
	Clock clock.PassiveClock
	// MaxConcurrentReconciles is how many Tasks are worked on at a time; the
	// default is 32. Most of the time is spent waiting for the store, which makes
	// concurrent writes durable together.
	MaxConcurrentReconciles int
	// Instance names this process in Events (reportingInstance, up to 128
	// bytes); the default is the host's name.
	Instance string
	// ResyncPeriod is how often every Task is looked at again although nothing
	// happened; the default is 10 hours.
	ResyncPeriod time.Duration
	// MetricsAddress and HealthProbeAddress (host:port) serve /metrics, and
	// /healthz with /readyz, in plain HTTP; the default is not to serve them.
	MetricsAddress     string
	HealthProbeAddress string
	// LeaderElection makes several replicas take turns; the default is that
	// this process is the only one.
	LeaderElection *LeaderElection
}

// LeaderElection names the Lease by which replicas agree who works. A process
// whose RunController returned an error must end: it may have lost the Lease.
type LeaderElection struct {
	Namespace string
	Name      string
}

// RunController reconciles Tasks until ctx ends, and returns nil then. It calls
// ready once, when its cache has synced. It starts no signal handler, and
// may be called again in the same process after it returned.
//
// controller-runtime's own root logger, of which a process has one, becomes
// options.Log unless it was set before.
func RunController(ctx context.Context, options Options, ready func()) error {
	options, err := options.withDefaults()
	if err != nil {
		return err
	}
	logf.SetLogger(options.Log)
	mgr, err := newManager(options)
	if err != nil {
		return err
	}
	defer utilnet.CloseIdleConnectionsFor(mgr.GetHTTPClient().Transport)

	events, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("making the client for Events: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).
		Named("task").
		For(&taskv1.Task{}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: options.MaxConcurrentReconciles,
			ReconciliationTimeout:   reconcileLimit,
			RateLimiter:             newRateLimiter(),
		}).
		Complete(&reconciler{
			tasks:    mgr.GetClient(),
			events:   events,
			writes:   newWrites(),
			clock:    options.Clock,
			instance: options.Instance,
		})
	if err != nil {
		return fmt.Errorf("setting up the Task controller: %w", err)
	}
	if err := addNamespaceReconciler(mgr); err != nil {
		return fmt.Errorf("setting up the namespace controller: %w", err)
	}
	synced := &syncedCache{cache: mgr.GetCache(), ready: ready, done: make(chan struct{})}
	if err := errors.Join(mgr.Add(synced), mgr.AddReadyzCheck("cache", synced.check)); err != nil {
		return fmt.Errorf("setting up the Task controller: %w", err)
	}
	if err := startInformers(ctx, mgr.GetCache()); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the Task controller: %w", err)
	}
	return nil
}

func (o Options) withDefaults() (Options, error) {
	if o.Config == nil {
		return o, errors.New("operator: Options.Config is required")
	}
	o.Config = rest.CopyConfig(o.Config)
	if o.Config.QPS == 0 {
		o.Config.QPS = -1
	}
	if o.Config.UserAgent == "" {
		o.Config.UserAgent = component
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.MaxConcurrentReconciles == 0 {
		o.MaxConcurrentReconciles = defaultConcurrency
	}
	if o.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("finding the host's name for Events: %w", err)
		}
		o.Instance = host
	}
	o.Instance = truncate(o.Instance, instanceLimit)
	return o, nil
}

func newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast)
}

func newManager(options Options) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("registering the operator's kinds: %w", err)
	}
	settings := manager.Options{
		Scheme:         scheme,
		MapperProvider: newMapper,
		Logger:         options.Log,
		Cache: cache.Options{
			DefaultTransform:            slim,
			ReaderFailOnMissingInformer: true,
		},
		// Names of controllers are checked against all that this process ever
		// made, and these may be made again.
		Controller:              config.Controller{SkipNameValidation: ptr.To(true)},
		GracefulShutdownTimeout: ptr.To(stopLimit),
		Metrics:                 metricsserver.Options{BindAddress: orOff(options.MetricsAddress)},
		HealthProbeBindAddress:  orOff(options.HealthProbeAddress),
	}
	if options.ResyncPeriod != 0 {
		settings.Cache.SyncPeriod = &options.ResyncPeriod
	}
	if election := options.LeaderElection; election != nil {
		settings.LeaderElection = true
		settings.LeaderElectionNamespace = election.Namespace
		settings.LeaderElectionID = election.Name
		settings.LeaderElectionReleaseOnCancel = true
	}
	mgr, err := manager.New(options.Config, settings)
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	return mgr, nil
}

// orOff turns an empty address into controller-runtime's word for none.
func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}
