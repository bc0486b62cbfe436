package supervisor

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taskctl-dev/taskctl/aggregator"
	"github.com/taskctl-dev/taskctl/cluster/embedded"
	"github.com/taskctl-dev/taskctl/internal/install"
	"github.com/taskctl-dev/taskctl/internal/lifecycle"
	"github.com/taskctl-dev/taskctl/internal/pki"
	"github.com/taskctl-dev/taskctl/operator"
	"github.com/taskctl-dev/taskctl/storage"
)

// components is the table of docs/architecture.md. Each may take as long to
// start as all together: on a busy machine any of them may be the slow one. The
// stop limits of what stands in one line of needs add up to the longest stop
// that there can be; each is a few times what a stop really takes. The API
// server's is the longest: the seconds of computing of its start can't be cut.
func (a *Appliance) components(listener net.Listener) []lifecycle.Component {
	admin := a.pki.RESTConfig(a.server, pki.Admin)

	const second = time.Second
	limit := a.options.Wait
	all := []lifecycle.Component{
		{Name: Certificates, Run: a.pki.Run, Restart: true, StartTimeout: limit, StopTimeout: 2 * second},
		{Name: Storage, Run: a.recordingStorage(a.store), StartTimeout: limit, StopTimeout: 5 * second},
		{Name: Cleanup, Needs: []string{APIServer}, Run: once(a.cleanup(admin)), StartTimeout: limit, StopTimeout: 2 * second},
		{Name: Manifests, Needs: []string{Cleanup}, Run: once(a.applyManifests(admin)), StartTimeout: limit, StopTimeout: 2 * second},
		{Name: Operator, Needs: []string{Manifests}, Run: a.runOperator, Restart: true, StartTimeout: limit, StopTimeout: 7 * second},
		{Name: Webhooks, Needs: []string{Manifests}, Run: a.runWebhooks, Restart: true, StartTimeout: limit, StopTimeout: 5 * second},
		{Name: Aggregator, Needs: []string{Manifests}, Run: a.runAggregator(a.store.Endpoint()), Restart: true, StartTimeout: limit, StopTimeout: 5 * second},
		{
			Name: Registration, Needs: []string{Operator, Webhooks, Aggregator, ControllerManager}, Run: a.register(admin),
			Restart: true, StartTimeout: limit, StopTimeout: 5 * second,
		},
	}
	all = slices.Insert(all, 2, a.clusterComponents(listener)...)
	all = slices.DeleteFunc(all, func(c lifecycle.Component) bool { return a.isLeftOut(c.Name) })
	for i := range all {
		component := &all[i]
		component.Needs = slices.DeleteFunc(component.Needs, a.isLeftOut)
		component.LogFile = a.logs.Path(component.Name)
		component.Log = a.logs.Writer(component.Name)
	}
	return all
}

// clusterComponents are those that the drivers differ in.
func (a *Appliance) clusterComponents(listener net.Listener) []lifecycle.Component {
	const second = time.Second
	limit := a.options.Wait
	if a.cluster != nil {
		return []lifecycle.Component{
			{Name: APIServer, Needs: []string{Storage}, Run: a.runNodeAPIServer, StartTimeout: limit, StopTimeout: 45 * second},
			{Name: Node, Needs: []string{APIServer}, Run: a.cluster.RunNode, StartTimeout: limit, StopTimeout: 5 * second},
		}
	}
	apiserver := &embedded.APIServer{Listener: listener, Storage: a.store.Endpoint(), PKI: a.pki, Args: a.options.APIServerArgs}
	manager := &embedded.ControllerManager{Host: a.server, PKI: a.pki, Log: a.logs.Writer(ControllerManager)}
	return []lifecycle.Component{
		{Name: APIServer, Needs: []string{Storage}, Run: apiserver.Run, StartTimeout: limit, StopTimeout: 30 * second},
		{Name: ControllerManager, Needs: []string{APIServer}, Run: manager.Run, StartTimeout: limit, StopTimeout: 5 * second},
	}
}

// isLeftOut is true for what the user, or the driver, does without: a node has
// a controller manager of its own.
func (a *Appliance) isLeftOut(name string) bool {
	return slices.Contains(a.options.Without, name) || name == ControllerManager && a.cluster != nil
}

func (a *Appliance) cleanup(admin *rest.Config) func(context.Context) error {
	return func(ctx context.Context) error { return install.RemoveStale(ctx, admin) }
}

func (a *Appliance) applyManifests(admin *rest.Config) func(context.Context) error {
	return func(ctx context.Context) error { return install.Apply(ctx, admin) }
}

func (a *Appliance) runOperator(ctx context.Context, ready func()) error {
	return operator.RunController(ctx, operator.Options{
		Config: a.pki.RESTConfig(a.server, pki.Operator),
		Log:    a.logs.Logr(Operator),
	}, ready)
}

func (a *Appliance) runWebhooks(ctx context.Context, ready func()) error {
	reach, err := a.reached(ctx)
	if err != nil {
		return err
	}
	if err := a.pki.AddNames(pki.WebhooksServing, reach.Dial.String()); err != nil {
		return err
	}
	listener, err := a.listenAs(ctx, Webhooks)
	if err != nil {
		return err
	}
	return operator.RunWebhooks(ctx, operator.WebhookOptions{
		Listener:       listener,
		GetCertificate: a.pki.GetCertificate(pki.WebhooksServing),
		Log:            a.logs.Logr(Webhooks),
	}, ready)
}

// runAggregator is given the store that kube-apiserver uses too: what the
// aggregated API stores itself lies beside everything else, and is routed like
// it.
func (a *Appliance) runAggregator(endpoint storage.Endpoint) func(context.Context, func()) error {
	return func(ctx context.Context, ready func()) error {
		serving := a.pki.ServingFiles(pki.AggregatorServing)
		kept := aggregator.Endpoint(endpoint)
		return aggregator.Run(ctx, aggregator.Options{
			Config:   a.pki.RESTConfig(a.server, pki.Aggregator),
			Listen:   func(ctx context.Context) (net.Listener, error) { return a.listenAs(ctx, Aggregator) },
			CertFile: serving.Cert,
			KeyFile:  serving.Key,
			RunID:    a.runID,
			Storage:  &kept,
			Log:      a.logs.Logr(Aggregator),
		}, ready)
	}
}

// listenAs opens a component's port and remembers it for the registration.
func (a *Appliance) listenAs(ctx context.Context, component string) (net.Listener, error) {
	reach, err := a.reached(ctx)
	if err != nil {
		return nil, err
	}
	listener, err := a.listen(ctx, reach.Listen, component, 0)
	if err != nil {
		return nil, err
	}
	a.ports.set(component, netip.AddrPortFrom(reach.Dial, uint16(portOf(listener))))
	return listener, nil
}
