package stored

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/taskctl-dev/taskctl/aggregator/relations"
)

// reflector keeps the graph up to date from the registry itself: in this
// process, without a request.
func (r *Relations) reflector() *cache.Reflector {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return r.store.List(in(ctx, metav1.NamespaceAll), internal(options))
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watching, err := r.store.Watch(in(ctx, metav1.NamespaceAll), internal(options))
			if err != nil {
				return nil, err
			}
			return watch.Filter(watching, unwrap), nil
		},
	}
	lists := cache.ToListWatcherWithWatchListSemantics(source, listsOnly{})
	return cache.NewReflectorWithOptions(lists, r.kind.newObject(), graphStore{r.graph}, cache.ReflectorOptions{Name: "aggregator-" + r.kind.Resource})
}

// listsOnly says that lists are not streamed.
type listsOnly struct{}

// IsWatchListSemanticsUnSupported is what client-go asks for.
func (listsOnly) IsWatchListSemanticsUnSupported() bool { return true }

func internal(options metav1.ListOptions) *metainternalversion.ListOptions {
	return &metainternalversion.ListOptions{
		ResourceVersion:      options.ResourceVersion,
		ResourceVersionMatch: options.ResourceVersionMatch,
		AllowWatchBookmarks:  options.AllowWatchBookmarks,
		TimeoutSeconds:       options.TimeoutSeconds,
		Limit:                options.Limit,
		Continue:             options.Continue,
	}
}

// unwrap takes an object out of what the watch cache puts around it, so that it
// is encoded once for all watches.
func unwrap(event watch.Event) (watch.Event, bool) {
	if cached, wrapped := event.Object.(runtime.CacheableObject); wrapped {
		event.Object = cached.GetObject()
	}
	return event, true
}

// graphStore is what the reflector writes to.
type graphStore struct{ graph *relations.Graph }

// Add implements cache.ReflectorStore.
func (s graphStore) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s graphStore) Update(object any) error {
	key, task, version, err := read(object.(runtime.Object))
	if err != nil {
		return err
	}
	s.graph.Set(key, task, version)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s graphStore) Delete(object any) error {
	key, _, version, err := read(object.(runtime.Object))
	if err != nil {
		return err
	}
	s.graph.Remove(key, version)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s graphStore) Replace(objects []any, resourceVersion string) error {
	tasks := make(map[relations.Key]relations.Task, len(objects))
	for _, object := range objects {
		key, task, _, err := read(object.(runtime.Object))
		if err != nil {
			return err
		}
		tasks[key] = task
	}
	version, err := versionOf(resourceVersion)
	if err != nil {
		return err
	}
	s.graph.Replace(tasks, version)
	return nil
}

// Resync implements cache.ReflectorStore: there is nothing to do again.
func (graphStore) Resync() error { return nil }
