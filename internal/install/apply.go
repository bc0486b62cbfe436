package install

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/taskctl-dev/taskctl/manifests"
)

// Apply puts CustomResourceDefinitions, RBAC and admission policies into the
// cluster, by server-side apply, and returns when the definitions are
// Established and their resources are served.
func Apply(ctx context.Context, config *rest.Config) error {
	objects, err := load(manifests.FS, "crds", "rbac", "policies")
	if err != nil {
		return err
	}
	c, err := connect(config)
	if err != nil {
		return err
	}
	defer c.close()

	// What lives in the cluster needs nothing else; what lives in a namespace
	// needs the namespace.
	first, second, err := split(objects)
	if err != nil {
		return err
	}
	if err := c.applyAll(ctx, first); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.applyAll(groupCtx, second) })
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			group.Go(func() error { return c.waitServed(groupCtx, object) })
		}
	}
	return group.Wait()
}

// applyAll applies objects side by side.
func (c *client) applyAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, object := range objects {
		group.Go(func() error { return c.apply(ctx, object) })
	}
	return group.Wait()
}

func split(objects []*unstructured.Unstructured) (cluster, namespaced []*unstructured.Unstructured, err error) {
	for _, object := range objects {
		where, err := targetOf(object.GroupVersionKind())
		if err != nil {
			return nil, nil, err
		}
		if where.namespaced {
			namespaced = append(namespaced, object)
		} else {
			cluster = append(cluster, object)
		}
	}
	return cluster, namespaced, nil
}

// waitServed waits until a CustomResourceDefinition is Established and each of
// its served versions answers a list.
func (c *client) waitServed(ctx context.Context, definition *unstructured.Unstructured) error {
	name := definition.GetName()
	resource, err := c.resource(definition)
	if err != nil {
		return err
	}
	err = poll(ctx, "the CustomResourceDefinition "+name+" to be Established", func(ctx context.Context) error {
		current, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return conditionTrue(current, "Established")
	})
	if err != nil {
		return err
	}
	resources, err := servedResources(definition)
	if err != nil {
		return err
	}
	for _, served := range resources {
		err := poll(ctx, served.Resource+" to be served", func(ctx context.Context) error {
			_, err := c.dynamic.Resource(served).List(ctx, metav1.ListOptions{Limit: 1})
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("not served yet: %w", err)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
