package stored

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// DeleteOrphans deletes what is in namespaces that don't exist. Kubernetes
// deletes the contents of a namespace through the APIs that are registered at
// that time, and ours was not if it did not run then. It returns how many
// namespaces it cleared.
func (r *REST) DeleteOrphans(ctx context.Context, exists func(ctx context.Context, namespace string) (bool, error)) (int, error) {
	if !r.kind.Namespaced {
		return 0, nil
	}
	list, err := r.List(in(ctx, metav1.NamespaceAll), &metainternalversion.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", r.kind.Resource, err)
	}
	known := map[string]bool{}
	cleared := 0
	err = meta.EachListItem(list, func(object runtime.Object) error {
		objectMeta, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		namespace := objectMeta.GetNamespace()
		if known[namespace] {
			return nil
		}
		known[namespace] = true
		found, err := exists(ctx, namespace)
		if err != nil {
			return fmt.Errorf("read namespace %s: %w", namespace, err)
		}
		if found {
			return nil
		}
		if _, err := r.DeleteCollection(in(ctx, namespace), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternalversion.ListOptions{}); err != nil {
			return fmt.Errorf("delete the %s of namespace %s, which does not exist any more: %w", r.kind.Resource, namespace, err)
		}
		cleared++
		return nil
	})
	return cleared, err
}
