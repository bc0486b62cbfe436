package aggregator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/taskctl-dev/taskctl/aggregator/combinedtask"
	"github.com/taskctl-dev/taskctl/aggregator/details"
	"github.com/taskctl-dev/taskctl/aggregator/sequence"
	"github.com/taskctl-dev/taskctl/aggregator/view"
)

// Run serves the aggregated API until ctx ends, and returns nil then. It calls
// ready once, after its own /readyz has answered 200 over the listener: Tasks
// and Events are known, resource versions are reserved, and requests of the
// aggregation layer can be recognised.
//
// It starts no signal handler and changes nothing that is process-wide. It may
// be run again in the same process, after an error and after a panic in one of
// its parts too, which is returned as an error. An error that ends the start,
// with ctx, says what was waited for.
func Run(ctx context.Context, options Options, ready func()) error {
	options, err := options.complete()
	if err != nil {
		return err
	}
	a, err := assemble(options)
	if err != nil {
		return err
	}
	defer a.view.Close()

	// The server stops first, what feeds it after.
	group, running := errgroup.WithContext(ctx)
	feeding, stopFeeding := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFeeding()
	group.Go(guard("the reflector of Tasks", func() error {
		a.clients.taskReflector(tee{a.join.Tasks(feeding), a.searcher}).RunWithContext(feeding)
		return nil
	}))
	group.Go(guard("the reflector of Events", func() error {
		a.clients.eventReflector(a.join.Events(feeding)).RunWithContext(feeding)
		return nil
	}))
	group.Go(guard("the front-proxy controller", func() error {
		return a.proxy.follow(feeding, a.clients.kubernetes)
	}))
	group.Go(guard("the API server", func() error {
		defer stopFeeding()
		return a.serve(running, ready)
	}))
	err = group.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// aggregator is one run's parts.
type aggregator struct {
	options Options
	clients *clients
	proxy   *frontProxy
	numbers *sequence.Numbers
	view    *view.View
	join    *combinedtask.Join

	searcher *details.Searcher
}

func assemble(options Options) (*aggregator, error) {
	clients, err := newClients(options.Config)
	if err != nil {
		return nil, err
	}
	proxy, err := newFrontProxy(clients.kubernetes)
	if err != nil {
		return nil, err
	}
	numbers := sequence.New(sequence.Options{
		ConfigMaps: clients.kubernetes.CoreV1().ConfigMaps(options.Namespace),
		Name:       SequenceName,
		Log:        options.Log,
	})
	view := combinedtask.NewView(view.Options{Numbers: numbers})
	return &aggregator{
		options: options,
		clients: clients,
		proxy:   proxy,
		numbers: numbers,
		view:    view,
		join:    combinedtask.NewJoin(view, options.EventsPerTask),

		searcher: details.NewSearcher(),
	}, nil
}

// wait returns once every check passes. They are asked in order, so that the
// error names the first thing that is missing.
func (a *aggregator) wait(ctx context.Context, checks []healthz.HealthChecker) error {
	if err := poll(ctx, a.numbers.Reserve); err != nil {
		return err
	}
	return poll(ctx, func(context.Context) error {
		for _, check := range checks {
			if err := check.Check(nil); err != nil {
				return fmt.Errorf("wait for %s: %w", check.Name(), err)
			}
		}
		return nil
	})
}

// checks are what readiness means, besides the store's.
func (a *aggregator) checks() []healthz.HealthChecker {
	named := func(name string, check func() error) healthz.HealthChecker {
		return healthz.NamedCheck(name, func(*http.Request) error { return check() })
	}
	return []healthz.HealthChecker{
		named("front-proxy", a.proxy.check),
		named("resource-versions", func() error {
			if !a.numbers.Reserved() {
				return errors.New("no resource versions are reserved")
			}
			return nil
		}),
		named("combinedtasks", func() error {
			if !a.join.Synced() {
				return errors.New("not all Tasks and Events are listed yet")
			}
			return nil
		}),
		named("details", func() error {
			if !a.searcher.Synced() {
				return errors.New("not all Tasks are indexed yet")
			}
			return nil
		}),
	}
}

// guard turns a panic into an error, so that whoever restarts the aggregator
// can do so.
func guard(name string, run func() error) func() error {
	return func() (err error) {
		defer func() {
			if reason := recover(); reason != nil {
				err = fmt.Errorf("%s panicked: %v\n%s", name, reason, debug.Stack())
			}
		}()
		return run()
	}
}
