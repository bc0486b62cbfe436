package operator

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// namespaceReconciler deletes the Tasks of a namespace as soon as the namespace
// is being deleted.
//
// Kubernetes' namespace controller would delete them too, but it first looks
// after 5 s, and again 5 s after that if it found objects with finalizers: a
// namespace with Tasks in it would always take more than 10 s. Tasks that are
// deleted in its first 5 s are gone when it looks.
type namespaceReconciler struct {
	tasks client.Client // reads from the cache
}

// Reconcile implements reconcile.Reconciler; the request is for a namespace
// that was terminating when it was queued, which can't be undone.
func (r *namespaceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var tasks taskv1.TaskList
	if err := r.tasks.List(ctx, &tasks, client.InNamespace(request.Name), client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the Tasks of a terminating namespace: %w", err)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(deleteConcurrency)
	for i := range tasks.Items {
		if task := &tasks.Items[i]; task.DeletionTimestamp.IsZero() {
			group.Go(func() error { return r.delete(groupCtx, task) })
		}
	}
	return reconcile.Result{}, group.Wait()
}

// delete deletes one Task. Many at a time are faster than the collection in one
// request, whose objects the API server deletes one after the other: the store
// makes concurrent writes durable together.
func (r *namespaceReconciler) delete(ctx context.Context, task *taskv1.Task) error {
	err := r.tasks.Delete(ctx, task, client.Preconditions{UID: &task.UID})
	if err != nil && !outdated(err) {
		return fmt.Errorf("deleting the Task %s of a terminating namespace: %w", task.Name, err)
	}
	return nil
}

// addNamespaceReconciler adds the controller that watches namespaces.
func addNamespaceReconciler(mgr manager.Manager) error {
	terminating := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return !object.GetDeletionTimestamp().IsZero()
	})
	return builder.ControllerManagedBy(mgr).
		Named("task-namespace").
		For(&corev1.Namespace{}, builder.WithPredicates(terminating)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: namespaceConcurrency,
			ReconciliationTimeout:   reconcileLimit,
			RateLimiter:             newRateLimiter(),
		}).
		Complete(&namespaceReconciler{tasks: mgr.GetClient()})
}
