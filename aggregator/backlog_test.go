package aggregator_test

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/taskctl-dev/taskctl/aggregator"
	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/view"
)

// Backlog joins namespaces and Tasks: how many are pending in a namespace, and
// how many may be, by an annotation of the namespace.
type Backlog struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Pending           int64  `json:"pending"`
	Limit             string `json:"limit,omitempty"`
}

// An item of a view never changes; each read gets a struct of its own.
func (b Backlog) Key() view.Key         { return view.Key{Name: b.Name} }
func (b Backlog) Labels() labels.Labels { return labels.Set(b.ObjectMeta.Labels) }
func (b Backlog) Fields() fields.Fields { return fields.Set{"metadata.name": b.Name} }
func (b Backlog) Object(resourceVersion string) runtime.Object {
	b.ResourceVersion = resourceVersion
	return &b
}

// backlogs compute them from two informers.
type backlogs struct {
	view              *view.View
	informers         dynamicinformer.DynamicSharedInformerFactory
	namespaces, tasks cache.SharedIndexInformer
	changed           workqueue.TypedInterface[string] // namespaces, each once however much changes
}

func newBacklogs(p aggregator.Parts) (*aggregator.Served, error) {
	client, err := dynamic.NewForConfig(p.Config)
	if err != nil {
		return nil, err
	}
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	b := &backlogs{
		view: view.New(view.Options{
			Resource: searchv1.Resource("backlogs"), ClusterScoped: true, Numbers: p.Numbers,
			New: func() runtime.Object { return &Backlog{} },
		}),
		informers:  informers,
		namespaces: informers.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Informer(),
		tasks:      informers.ForResource(schema.GroupVersionResource{Group: "example.example.com", Version: "v1", Resource: "tasks"}).Informer(),
		changed:    workqueue.NewTyped[string](),
	}
	served := view.NewREST(b.view, "backlog", func() runtime.Object { return &BacklogList{} }, mayReadBacklogs(p.Authorizer))
	return &aggregator.Served{Resources: map[string]rest.Storage{"backlogs": served}, Run: b.run, Ready: b.view.Ready}, nil
}

func (b *backlogs) run(ctx context.Context) {
	defer b.view.Close()
	defer b.informers.Shutdown()
	b.informers.Start(ctx.Done())
	b.informers.WaitForCacheSync(ctx.Done())
	changed := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil && key.Namespace != "" {
			b.changed.Add(key.Namespace)
		} else if err == nil {
			b.changed.Add(key.Name)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(_, object any) { changed(object) }}
	for _, informer := range []cache.SharedIndexInformer{b.namespaces, b.tasks} {
		_, _ = informer.AddEventHandler(handler)
	}
	context.AfterFunc(ctx, b.changed.ShutDown)
	var items []view.Item
	for _, namespace := range b.namespaces.GetStore().ListKeys() {
		items = append(items, b.compute(namespace))
	}
	_ = b.view.Populate(ctx, items) // fails when ctx has ended
	for {
		namespace, end := b.changed.Get()
		if end {
			return
		}
		// What the informer tells twice is told on; combinedtask compares.
		_ = b.view.Commit(ctx, view.Change{Key: view.Key{Name: namespace}, Item: b.compute(namespace)})
		b.changed.Done(namespace)
	}
}

// compute returns nil, a deletion, for a namespace that is gone.
func (b *backlogs) compute(namespace string) view.Item {
	found, exists, err := b.namespaces.GetStore().GetByKey(namespace)
	if err != nil || !exists {
		return nil
	}
	item := Backlog{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	item.Limit = found.(*unstructured.Unstructured).GetAnnotations()["example.com/limit"]
	tasks, _ := b.tasks.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	for _, task := range tasks {
		if state, _, _ := unstructured.NestedString(task.(*unstructured.Unstructured).Object, "spec", "taskState"); state == "Pending" {
			item.Pending++
		}
	}
	return item
}
