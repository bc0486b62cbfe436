package install

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/taskctl-dev/taskctl/manifests"
)

// Register registers the webhooks and the aggregated API of this run, and
// returns when requests to the API server really reach them. What they point at
// must answer already.
func Register(ctx context.Context, config *rest.Config, registration Registration) error {
	objects, err := load(manifests.FS, "registrations")
	if err != nil {
		return err
	}
	objects, err = registration.fill(objects, time.Now())
	if err != nil {
		return err
	}
	c, err := connect(config)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.applyAll(ctx, objects); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if registration.webhooks() {
		group.Go(func() error { return c.waitWebhooks(ctx) })
	}
	if registration.aggregator() {
		group.Go(func() error { return c.waitAggregator(ctx, registration.RunID) })
	}
	return group.Wait()
}

// Unregister takes all registrations out again, so that nobody waits for a
// process that has ended. It is the first step of a stop.
func Unregister(ctx context.Context, config *rest.Config) error {
	return removeRegistrations(ctx, config)
}

// RemoveStale takes out the registrations of an earlier run that ended without
// Unregister: the API server would send requests to what is no longer there.
func RemoveStale(ctx context.Context, config *rest.Config) error {
	return removeRegistrations(ctx, config)
}

// removeRegistrations deletes what carries our label among the kinds that make
// the API server call somebody. Services don't, and stay.
func removeRegistrations(ctx context.Context, config *rest.Config) error {
	c, err := connect(config)
	if err != nil {
		return err
	}
	defer c.close()
	var group errgroup.Group // without a context: one failure must not keep the others from going
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	} {
		group.Go(func() error { return c.removeLabelled(ctx, kind) })
	}
	return group.Wait()
}

func (c *client) removeLabelled(ctx context.Context, kind schema.GroupVersionKind) error {
	where, err := targetOf(kind)
	if err != nil {
		return err
	}
	resource := c.dynamic.Resource(where.resource)
	list, err := resource.List(ctx, metav1.ListOptions{LabelSelector: ManagedByLabel + "=" + ManagedByValue})
	if err != nil {
		return fmt.Errorf("listing registrations of kind %s: %w", kind.Kind, err)
	}
	for _, object := range list.Items {
		uid := object.GetUID()
		err := resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing %s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
	return nil
}
