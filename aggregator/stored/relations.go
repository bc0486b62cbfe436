package stored

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/client-go/util/workqueue"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/relations"
)

// Relations keep what follows from spec.dependsOn of one kind: writes that
// would close a cycle are refused (see change), and what blocks a task and how
// many depend on it stands in its status, written by Follow and Settle.
type Relations struct {
	kind   Kind
	store  *genericregistry.Store
	status *StatusREST
	graph  *relations.Graph
	queue  workqueue.TypedRateLimitingInterface[relations.Key]
	// writing is held by the one write that adds to a dependsOn, from its check
	// until it is stored. A channel, since waiting for it ends with a request.
	writing chan struct{}
}

func newRelations(kind Kind, store *genericregistry.Store, status *StatusREST) *Relations {
	r := &Relations{
		kind: kind, store: store, status: status,
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[relations.Key](retryFirst, retryLast)),
		writing: make(chan struct{}, 1),
	}
	r.graph = relations.New(func(key relations.Key) { r.queue.Add(key) })
	return r
}

const (
	// retryFirst and retryLast are the pauses before a status that could not be
	// written is tried again.
	retryFirst = 20 * time.Millisecond
	retryLast  = 10 * time.Second
)

// Name of the resource.
func (r *Relations) Name() string { return r.kind.Resource }

// Synced tells whether all tasks are known.
func (r *Relations) Synced() bool { return r.graph.Synced() }

func keyOf(object metav1.Object) relations.Key {
	return relations.Key{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// in is a context for requests about a task. Those of the namespace "" are about
// all namespaces.
func in(ctx context.Context, namespace string) context.Context {
	return genericapirequest.WithNamespace(ctx, namespace)
}

// versionOf is an object's resourceVersion, a number in every API server.
func versionOf(resourceVersion string) (uint64, error) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the resourceVersion %q is no number: %w", resourceVersion, err)
	}
	return version, nil
}

// read makes of an object what the graph knows of it.
func read(object runtime.Object) (relations.Key, relations.Task, uint64, error) {
	objectMeta, spec, status, ok := parts(object)
	if !ok {
		return relations.Key{}, relations.Task{}, 0, fmt.Errorf("relate tasks: got a %T", object)
	}
	version, err := versionOf(objectMeta.ResourceVersion)
	task := relations.Task{
		DependsOn: slices.Clone(spec.DependsOn),
		Finished:  finished(spec),
		Shown: relations.Status{
			BlockedBy:       slices.Clone(status.BlockedBy),
			BlockedByCount:  status.BlockedByCount,
			DependentsCount: status.DependentsCount,
			Cyclic:          meta.IsStatusConditionTrue(status.Conditions, searchv1.ConditionCyclic),
		},
	}
	return keyOf(objectMeta), task, version, err
}

// refuseCycle refuses that a task depends on these names, if that would close a
// cycle. The graph may lag behind the store: it knows everything that was
// written here, but maybe not yet that a task is gone or was changed. So what it
// finds is checked against the store.
func (r *Relations) refuseCycle(ctx context.Context, key relations.Key, dependsOn []string) error {
	exact := map[relations.Key][]string{}
	for {
		cycle := r.graph.Cycle(key, dependsOn, exact)
		if cycle == nil {
			return nil
		}
		confirmed := true
		for i, at := range cycle[1 : len(cycle)-1] {
			if _, read := exact[at]; read {
				continue
			}
			names, err := r.stored(ctx, at)
			if err != nil {
				return err
			}
			exact[at] = names
			confirmed = confirmed && slices.Contains(names, cycle[i+2].Name)
		}
		if confirmed {
			return cycleError(r.kind, key, cycle)
		}
	}
}

// stored reads from the store itself what a task depends on.
func (r *Relations) stored(ctx context.Context, key relations.Key) ([]string, error) {
	object, err := r.store.Get(in(ctx, key.Namespace), key.Name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what %s depends on: %w", key.Name, err)
	}
	_, spec, _, ok := parts(object)
	if !ok {
		return nil, fmt.Errorf("relate tasks: got a %T", object)
	}
	return spec.DependsOn, nil
}
