package view

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// REST serves a View as it is: get, list and watch. A resource that has more to
// say embeds it, or does the same by itself, as combinedtasks does.
type REST struct {
	rest.TableConvertor

	view     *View
	singular string
	newList  func() runtime.Object
	allowed  func(ctx context.Context, verb, namespace, name string) error
}

var (
	_ rest.Storage              = (*REST)(nil)
	_ rest.Scoper               = (*REST)(nil)
	_ rest.Getter               = (*REST)(nil)
	_ rest.Lister               = (*REST)(nil)
	_ rest.Watcher              = (*REST)(nil)
	_ rest.SingularNameProvider = (*REST)(nil)
)

// NewREST serves a view. Each request is asked about with allowed, which returns
// a status (403) for those that show the user something of which they may not
// read the sources; the right on the resource itself was checked before. verb is
// get, list or watch; namespace "" stands for all, name for a list or watch is
// "".
func NewREST(v *View, singular string, newList func() runtime.Object, allowed func(ctx context.Context, verb, namespace, name string) error) *REST {
	return &REST{
		TableConvertor: rest.NewDefaultTableConvertor(v.options.Resource),
		view:           v, singular: singular, newList: newList, allowed: allowed,
	}
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return r.view.options.New() }

// Destroy implements rest.Storage. The view is closed by who made it.
func (r *REST) Destroy() {}

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object { return r.newList() }

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return !r.view.options.ClusterScoped }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return r.singular }

// Get implements rest.Getter.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	key := Key{Namespace: genericapirequest.NamespaceValue(ctx), Name: name}
	if err := r.allowed(ctx, "get", key.Namespace, name); err != nil {
		return nil, err
	}
	if err := r.view.Holds(options.ResourceVersion); err != nil {
		return nil, err
	}
	row, found, err := r.view.Get(key)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, apierrors.NewNotFound(r.view.options.Resource, name)
	}
	return row.Object(), nil
}

// List implements rest.Lister.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	namespace := genericapirequest.NamespaceValue(ctx)
	if err := r.allowed(ctx, "list", namespace, ""); err != nil {
		return nil, err
	}
	page, err := r.view.List(namespace, options)
	if err != nil {
		return nil, err
	}
	objects := make([]runtime.Object, 0, len(page.Rows))
	for _, row := range page.Rows {
		objects = append(objects, row.Object())
	}
	list := r.newList()
	if err := meta.SetList(list, objects); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	listMeta.SetResourceVersion(page.ResourceVersion)
	listMeta.SetContinue(page.Continue)
	listMeta.SetRemainingItemCount(page.RemainingItemCount)
	return list, nil
}

// Watch implements rest.Watcher.
func (r *REST) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	namespace := genericapirequest.NamespaceValue(ctx)
	if err := r.allowed(ctx, "watch", namespace, ""); err != nil {
		return nil, err
	}
	return r.view.Watch(ctx, namespace, options)
}
