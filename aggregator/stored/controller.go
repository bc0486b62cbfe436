package stored

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/relations"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// StatusWriters is how many statuses should be written at a time. The store
// makes concurrent writes durable together.
const StatusWriters = 16

// Follow reads all tasks of the kind until ctx ends. It and Settle are the
// relations controller.
func (r *Relations) Follow(ctx context.Context) { r.reflector().RunWithContext(ctx) }

// Settle writes into the tasks' status what follows from the graph, one task
// after the other, until Stop is called; several may run at a time. A change of
// the status is a change like any other, so watches, resourceVersions and
// selectors need nothing special.
func (r *Relations) Settle(ctx context.Context, log logr.Logger) {
	for r.next(ctx, log) {
	}
}

// Stop ends Settle.
func (r *Relations) Stop() { r.queue.ShutDown() }

// next settles one task, and returns false at the end.
func (r *Relations) next(ctx context.Context, log logr.Logger) bool {
	key, end := r.queue.Get()
	if end {
		return false
	}
	defer r.queue.Done(key)
	if r.graph.Settled(key) {
		r.queue.Forget(key)
		return true
	}
	if err := r.settle(ctx, key); err != nil && ctx.Err() == nil {
		log.Info("A status could not be written and is tried again", "resource", r.kind.Resource, "namespace", key.Namespace, "name", key.Name, "error", err.Error())
		r.queue.AddRateLimited(key)
		return true
	}
	r.queue.Forget(key)
	return true
}

// settle writes what follows for a task into its status.
func (r *Relations) settle(ctx context.Context, key relations.Key) error {
	_, _, err := r.status.Update(in(ctx, key.Namespace), key.Name, settled{r.graph}, nil, nil, false, &metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the watch will tell
	}
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", key.Name, err)
	}
	return nil
}

// settled computes the new object from the stored one.
type settled struct{ graph *relations.Graph }

var _ rest.UpdatedObjectInfo = settled{}

// Preconditions implements rest.UpdatedObjectInfo.
func (settled) Preconditions() *metav1.Preconditions { return nil }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (s settled) UpdatedObject(_ context.Context, old runtime.Object) (runtime.Object, error) {
	object := old.DeepCopyObject()
	objectMeta, spec, status, ok := parts(object)
	if !ok {
		return nil, fmt.Errorf("relate tasks: got a %T", old)
	}
	show(s.graph.Status(keyOf(objectMeta), spec.DependsOn), objectMeta.Generation, status)
	return object, nil
}

// show writes what follows from the graph into a status. A task that never was
// part of a cycle has no condition about that.
func show(follows relations.Status, generation int64, status *searchv1.StoredTaskStatus) {
	status.BlockedBy = slices.Clone(follows.BlockedBy)
	status.BlockedByCount, status.DependentsCount = follows.BlockedByCount, follows.DependentsCount
	condition := metav1.Condition{
		Type: searchv1.ConditionCyclic, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "DependsOnItself", Message: "the task depends on itself through what it depends on; see the subresource graph",
	}
	if !follows.Cyclic {
		if meta.FindStatusCondition(status.Conditions, searchv1.ConditionCyclic) == nil {
			return
		}
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "NoCycle", "the task depends on itself no more"
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}

// finished tells whether a task blocks nobody any more.
func finished(spec *searchv1.StoredTaskSpec) bool { return spec.TaskState == taskv1.TaskStateFinished }
