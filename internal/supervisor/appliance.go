package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/taskctl-dev/taskctl/cluster/embedded"
	"github.com/taskctl-dev/taskctl/cluster/kind"
	"github.com/taskctl-dev/taskctl/internal/control"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/lifecycle"
	"github.com/taskctl-dev/taskctl/internal/logging"
	"github.com/taskctl-dev/taskctl/internal/pki"
)

// Appliance is one run of everything. Make it with New, run it once.
type Appliance struct {
	options Options
	folder  *datadir.Folder
	logs    *logging.Logs
	log     *slog.Logger
	runID   string
	started time.Time

	pki     *pki.PKI
	store   store
	cluster *kind.Cluster // nil with the embedded driver
	server  string        // the API server's URL

	group   *lifecycle.Group
	stop    context.CancelFunc
	changed chan struct{} // poked when webhooks or aggregator became ready
	ports   portBook
	// decorate, if set, changes the components before they start: tests make
	// them fail.
	decorate func([]lifecycle.Component) []lifecycle.Component

	mu    sync.Mutex // guards what follows, and calls of OnEvent one by one
	state control.State
	lost  bool // the data folder is gone

	logLines map[string][]string // the end of failed components' logs
}

// New prepares an appliance; nothing runs yet, nothing has to be closed.
func New(options Options) (*Appliance, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if err := embedded.CheckArgs(options.APIServerArgs); err != nil {
		return nil, err
	}
	if options.Storage.IsZero() {
		options.Storage = DefaultStorage()
	}
	if options.Driver == "" {
		options.Driver = EmbeddedDriver
	}
	if options.OnEvent == nil {
		options.OnEvent = func(Event) {}
	}
	return &Appliance{
		options: options,
		folder:  options.Folder,
		runID:   string(uuid.NewUUID()),
		changed: make(chan struct{}, 1),
		state:   control.Starting,
	}, nil
}

// Run starts everything, tells OnEvent when it is ready, and stops it in order
// when ctx ends or the control socket asks for it (nil), or when a component
// fails for good (an error, the cause first; see lifecycle.Error).
func (a *Appliance) Run(ctx context.Context) error {
	a.started = time.Now()
	a.logs = logging.New(a.folder.Logs(), a.options.Verbosity)
	defer a.logs.Close()
	a.log = a.logs.Slog("supervisor")
	ctx, a.stop = context.WithCancel(ctx)
	defer a.stop()

	err := a.run(ctx)
	recordErr := a.recordEnd(err)
	if err != nil {
		a.log.Error("the appliance failed", "error", err)
		a.emit(a.failedEvent(err))
		return err
	}
	if recordErr != nil {
		return recordErr
	}
	a.log.Info("the appliance has stopped")
	a.emit(Event{Kind: StoppedEvent})
	return nil
}

func (a *Appliance) run(ctx context.Context) error {
	listener, err := a.prepare(ctx)
	if err != nil {
		return err
	}
	closeListener := func() error { return nil }
	if listener != nil {
		closeListener = listener.Close
	}
	components := a.components(listener)
	if a.decorate != nil {
		components = a.decorate(components)
	}
	a.group, err = lifecycle.New(components, lifecycle.Options{OnChange: a.componentChanged})
	if err != nil {
		return errors.Join(err, closeListener())
	}
	if err := setKlogVerbosity(a.options.Verbosity); err != nil {
		return errors.Join(err, closeListener())
	}
	// Never restored: goroutines of Kubernetes outlive its servers for a moment,
	// and what they log must not reach stderr.
	embedded.CaptureProcess(a.logs.Writer(APIServer), a.fatal)

	socket, err := net.Listen("unix", a.folder.ControlSocket())
	if err != nil {
		return errors.Join(fmt.Errorf("opening the control socket: %w", err), closeListener())
	}
	// Control and the watch on the folder outlive the components: status and
	// stop answer until the end.
	besides, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	running.Go(func() {
		server := control.Server{Status: a.Status, Stop: a.requestStop, Logs: a.folder.Logs()}
		if err := server.Run(besides, socket); err != nil {
			a.group.Fail("", fmt.Errorf("the control socket: %w", err))
		}
	})
	running.Go(func() {
		if err := a.folder.AwaitLoss(besides); err != nil {
			a.mu.Lock()
			a.lost = true
			a.mu.Unlock()
			a.group.Fail("", err)
		}
	})
	running.Go(func() { a.limitStart(besides) })
	running.Go(func() {
		<-a.group.Stopping()
		a.setState(control.Stopping, Event{Kind: StoppingEvent})
	})
	return a.runGroup(ctx)
}

// fatal is called when code of Kubernetes wants to end the process. While the
// appliance stops that is no failure: steps of a start that are cut short see
// no other way out.
func (a *Appliance) fatal(err error) {
	component := fatalComponent()
	a.log.Error("a fatal exit was caught", "component", component, "error", err)
	select {
	case <-a.group.Stopping():
	default:
		a.group.Fail(component, err)
	}
}

// prepare makes what all components share. With the embedded driver it opens
// the API server's port; a node's is opened by its engine.
func (a *Appliance) prepare(ctx context.Context) (net.Listener, error) {
	authority, err := pki.Open(a.folder.PKI(), pki.Options{
		Lifetime: a.options.CertificateLifetime,
		Log:      a.logs.Slog(Certificates),
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the certificates: %w", err)
	}
	a.pki = authority
	authority.OnRenew(a.renewed)
	if a.store, err = newStore(a.options, a.folder, a.logs); err != nil {
		return nil, err
	}
	var listener net.Listener
	if a.options.Driver == KindDriver {
		if err := a.prepareNode(ctx); err != nil {
			return nil, err
		}
	} else {
		if listener, err = a.listen(ctx, loopback, APIServer, a.options.Port); err != nil {
			return nil, err
		}
		a.server = "https://" + listener.Addr().String()
	}
	err = a.folder.Update(func(s *datadir.State) {
		s.Driver, s.Settings = a.options.Driver, a.options.Settings
		s.RunID, s.StartedAt, s.PID = a.runID, a.started, os.Getpid()
		s.StoppedAt, s.Failure = time.Time{}, nil
	})
	if err == nil {
		err = a.writeKubeconfig()
	}
	if err != nil {
		if listener != nil {
			err = errors.Join(err, listener.Close())
		}
		return nil, err
	}
	a.log.Info("starting", "runID", a.runID, "pid", os.Getpid(), "server", a.server, "settings", a.options.Settings)
	return listener, nil
}

// runGroup runs the components and merges the kubeconfig while they are ready.
func (a *Appliance) runGroup(ctx context.Context) error {
	err := a.group.Run(ctx, func() {
		if err := a.mergeKubeconfig(ctx); err != nil {
			a.group.Fail("", err)
			return
		}
		a.becomeReady()
	})
	a.stop() // if a component ended it: the rest of the appliance follows
	return errors.Join(err, a.unmergeKubeconfig(context.WithoutCancel(ctx)))
}

// limitStart fails a start that takes longer than all components together may.
func (a *Appliance) limitStart(ctx context.Context) {
	if a.options.Wait <= 0 {
		return
	}
	timer := time.NewTimer(a.options.Wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	if a.State() != control.Starting {
		return
	}
	for _, status := range a.group.Snapshot() {
		if status.State == lifecycle.Starting || status.State == lifecycle.BackingOff {
			var last error
			if status.LastError != "" {
				last = errors.New(status.LastError)
			}
			a.group.Fail(status.Name, &lifecycle.TimeoutError{What: "not ready", Limit: a.options.Wait, Last: last})
			return
		}
	}
}

// recordEnd writes into state.json how the run ended, for a later status. A
// folder that is gone, or full, can't tell.
func (a *Appliance) recordEnd(cause error) error {
	a.mu.Lock()
	lost := a.lost
	a.mu.Unlock()
	if lost {
		return nil
	}
	return a.folder.Update(func(s *datadir.State) {
		s.StoppedAt = time.Now()
		if cause != nil {
			event := a.failedEvent(cause)
			s.Failure = &datadir.Failure{Component: event.Component, Reason: event.Reason, LogFile: event.LogFile}
		}
	})
}

// requestStop begins an ordered stop on behalf of the control socket.
func (a *Appliance) requestStop() {
	a.log.Info("a stop was asked for by the control socket")
	a.stop()
}

// listen opens a component's port on host and says so when it had to be another
// one than before.
func (a *Appliance) listen(ctx context.Context, host, component string, wanted int) (net.Listener, error) {
	listener, replaced, err := a.folder.Listen(ctx, host, component, wanted)
	if err != nil {
		return nil, err
	}
	if replaced != 0 {
		a.notice(fmt.Sprintf("port %d of %s was taken by another program meanwhile; it is %d now", replaced, component, portOf(listener)))
	}
	return listener, nil
}

// portOf is the port of a TCP listener.
func portOf(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }
