package operator

import (
	"context"
	"fmt"
	"slices"

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
	remains := func(task taskv1.Task) bool { return task.DeletionTimestamp.IsZero() }
	if !slices.ContainsFunc(tasks.Items, remains) {
		return reconcile.Result{}, nil
	}
	if err := r.tasks.DeleteAllOf(ctx, &taskv1.Task{}, client.InNamespace(request.Name)); err != nil {
		return reconcile.Result{}, fmt.Errorf("deleting the Tasks of a terminating namespace: %w", err)
	}
	return reconcile.Result{}, nil
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
