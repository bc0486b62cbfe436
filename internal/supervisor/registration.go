package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taskctl-dev/taskctl/cluster/kind"
	"github.com/taskctl-dev/taskctl/internal/install"
)

// unregisterLimit bounds taking the registrations out: three deletes, which an
// API server that still answers does in milliseconds.
const unregisterLimit = 2 * time.Second

// register is the Run of the component that registers webhooks and aggregated
// API with the API server. It registers again whenever one of them came back:
// it may have another port, and a changed APIService is checked at once instead
// of within half a minute.
func (a *Appliance) register(admin *rest.Config) func(context.Context, func()) error {
	return func(ctx context.Context, ready func()) error {
		for {
			if err := a.tryFromNode(ctx); err != nil && ctx.Err() == nil {
				return err
			}
			if err := install.Register(ctx, admin, a.registration()); err != nil && ctx.Err() == nil {
				return err
			}
			if ctx.Err() == nil {
				ready()
			}
			select {
			case <-ctx.Done():
				return unregister(ctx, admin)
			case <-a.changed:
				a.log.Info("registering webhooks and aggregated API again")
			}
		}
	}
}

// registration describes what this run has to register.
func (a *Appliance) registration() install.Registration {
	registration := install.Registration{RunID: a.runID}
	if address := a.ports.get(Webhooks); address.IsValid() {
		registration.WebhookURL = "https://" + address.String()
		registration.WebhookCABundle = a.pki.CABundle()
	}
	if address := a.ports.get(Aggregator); address.IsValid() {
		registration.AggregatorHost, registration.AggregatorPort = address.Addr().String(), int32(address.Port())
		registration.AggregatorCABundle = a.pki.CABundle()
	}
	return registration
}

// tryFromNode checks that the node reaches what is about to be registered: a
// webhook that can't be reached fails every write of a Task. A firewall does not
// go away by waiting, so it fails the appliance.
func (a *Appliance) tryFromNode(ctx context.Context) error {
	if a.cluster == nil {
		return nil
	}
	for _, component := range []string{Webhooks, Aggregator} {
		address := a.ports.get(component)
		if !address.IsValid() {
			continue
		}
		err := a.cluster.TryFromNode(ctx, address.Addr(), int(address.Port()))
		var unreachable *kind.UnreachableError
		if errors.As(err, &unreachable) && ctx.Err() == nil {
			a.group.Fail(Registration, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unregister runs although ctx has ended: it is the first step of the stop.
func unregister(ctx context.Context, admin *rest.Config) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unregisterLimit)
	defer cancel()
	if err := install.Unregister(ctx, admin); err != nil {
		return fmt.Errorf("taking out the registrations, which the next start will do: %w", err)
	}
	return nil
}

// once is the Run of a component that does one thing and has nothing to keep.
func once(do func(ctx context.Context) error) func(context.Context, func()) error {
	return func(ctx context.Context, ready func()) error {
		if err := do(ctx); err != nil {
			return err
		}
		ready()
		<-ctx.Done()
		return nil
	}
}
