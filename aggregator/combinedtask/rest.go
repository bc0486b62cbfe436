package combinedtask

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/view"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

const (
	resourceName = "combinedtasks"
	singularName = "combinedtask"
	shortName    = "ctk"

	// catchUp is how long a get waits until the join has what the API server
	// has.
	catchUp = time.Second
)

// TaskReader reads one Task from the API server. The error for a Task that
// does not exist must be a NotFound status.
type TaskReader interface {
	Get(ctx context.Context, namespace, name string) (*taskv1.Task, error)
}

// REST serves combinedtasks: get, list and watch.
type REST struct {
	view   *view.View
	reader TaskReader
	access access
	table  table
}

var (
	_ rest.Storage              = (*REST)(nil)
	_ rest.Scoper               = (*REST)(nil)
	_ rest.Getter               = (*REST)(nil)
	_ rest.Lister               = (*REST)(nil)
	_ rest.Watcher              = (*REST)(nil)
	_ rest.ShortNamesProvider   = (*REST)(nil)
	_ rest.SingularNameProvider = (*REST)(nil)
)

// NewREST serves what the join commits to the view. The authorizer is asked
// about the user's rights on Tasks and Events and should cache its answers.
func NewREST(v *view.View, reader TaskReader, a authorizer.Authorizer) *REST {
	return &REST{view: v, reader: reader, access: access{a}}
}

// NewView makes the view that a join commits to and NewREST serves.
func NewView(options view.Options) *view.View {
	options.Resource = searchv1.Resource(resourceName)
	options.New = func() runtime.Object { return &searchv1.CombinedTask{} }
	return view.New(options)
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &searchv1.CombinedTask{} }

// Destroy implements rest.Storage. The view is closed by who made it.
func (r *REST) Destroy() {}

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object { return &searchv1.CombinedTaskList{} }

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return singularName }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{shortName} }

// ConvertToTable implements rest.TableConvertor.
func (r *REST) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.table.convert(object, options)
}

// Get implements rest.Getter. It reads the Task first, so that whoever has just
// written a Task reads it back, and waits until the join has caught up.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	namespace := genericapirequest.NamespaceValue(ctx)
	if err := r.access.get(ctx, namespace, name); err != nil {
		return nil, err
	}
	if err := r.view.Holds(options.ResourceVersion); err != nil {
		return nil, err
	}
	task, err := r.read(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	var found *view.Row
	err = r.view.Wait(waiting, view.Key{Namespace: namespace, Name: name}, func(row *view.Row) bool {
		found = row
		return row != nil && caughtUp(row.Item.(*item).task, task)
	})
	if err == nil {
		return found.Object(), nil
	}
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return nil, err
	}
	// It may have been deleted right after it was read.
	if _, err := r.read(ctx, namespace, name); err != nil {
		return nil, err
	}
	return nil, view.NewUnavailable(searchv1.Resource(resourceName),
		fmt.Sprintf("the join has not caught up with Task %s/%s within %s, try again", namespace, name, catchUp))
}

func (r *REST) read(ctx context.Context, namespace, name string) (*taskv1.Task, error) {
	task, err := r.reader.Get(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(searchv1.Resource(resourceName), name)
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("read Task %s/%s: %w", namespace, name, err))
	}
	return task, nil
}

// caughtUp tells whether the join's Task is the one that was read, or newer.
func caughtUp(joined, read *taskv1.Task) bool {
	if joined.UID == read.UID && joined.ResourceVersion == read.ResourceVersion {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(joined.ResourceVersion, read.ResourceVersion)
	return err == nil && order > 0
}

// List implements rest.Lister.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	namespace := genericapirequest.NamespaceValue(ctx)
	if err := r.access.list(ctx, namespace); err != nil {
		return nil, err
	}
	page, err := r.view.List(namespace, options)
	if err != nil {
		return nil, err
	}
	list := &searchv1.CombinedTaskList{Items: make([]searchv1.CombinedTask, 0, len(page.Rows))}
	list.ResourceVersion, list.Continue, list.RemainingItemCount = page.ResourceVersion, page.Continue, page.RemainingItemCount
	for _, row := range page.Rows {
		list.Items = append(list.Items, *row.Object().(*searchv1.CombinedTask))
	}
	return list, nil
}

// Watch implements rest.Watcher.
func (r *REST) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	namespace := genericapirequest.NamespaceValue(ctx)
	if err := r.access.watch(ctx, namespace); err != nil {
		return nil, err
	}
	return r.view.Watch(ctx, namespace, options)
}
