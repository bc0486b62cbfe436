package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// errNamespaceGoing says that a namespace takes no Events any more, because it
// is being deleted or is gone.
var errNamespaceGoing = errors.New("the namespace is going")

// announce stores the Events of transitions, each once: one that exists
// already was stored by an attempt that crashed before the status advanced.
func (r *reconciler) announce(ctx context.Context, task *taskv1.Task, transitions []transition, now time.Time) error {
	for i, t := range transitions {
		// Transitions seen at one moment keep their order when they are sorted
		// by time.
		event := newEvent(task, t, r.instance, now.Add(time.Duration(i)*time.Microsecond))
		err := r.events.Create(ctx, event)
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
		case namespaceGoing(err):
			return errNamespaceGoing
		default:
			return fmt.Errorf("storing the Event %s: %w", t.reason, err)
		}
	}
	return nil
}

// namespaceGoing tells the two answers that mean that no Event can be stored in
// a namespace ever again from all others.
func namespaceGoing(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)
}

// notAnnounced ends a reconciliation whose Events could not be stored. The
// status does not advance, so the next attempt announces the same.
func (r *reconciler) notAnnounced(ctx context.Context, task *taskv1.Task, cause error, now time.Time) (reconcile.Result, error) {
	if errors.Is(cause, errNamespaceGoing) {
		// The Task is about to be deleted, which starts the next attempt.
		return reconcile.Result{}, nil
	}
	if !apierrors.IsForbidden(cause) && !apierrors.IsInvalid(cause) {
		return reconcile.Result{}, cause
	}
	// The API server answered, and will say the same until somebody changes
	// something: the user learns it from the Task, once.
	if ready := meta.FindStatusCondition(task.Status.Conditions, taskv1.ConditionReady); ready != nil &&
		ready.Reason == taskv1.ReasonEventRefused && ready.ObservedGeneration == task.Generation {
		return reconcile.Result{}, cause
	}
	status := *task.Status.DeepCopy()
	setCondition(&status, refusedCondition(cause), task.Generation, now)
	if err := r.writeStatus(ctx, task, status); err != nil {
		return reconcile.Result{}, errors.Join(cause, err)
	}
	return reconcile.Result{}, cause
}

// finalize announces that a Task is being deleted and then lets it go. The
// finalizer goes last, when its purpose is fulfilled.
func (r *reconciler) finalize(ctx context.Context, task *taskv1.Task) error {
	before := task.DeepCopy()
	if !controllerutil.RemoveFinalizer(task, taskv1.Finalizer) {
		return nil
	}
	if err := r.announceDeletion(ctx, task); err != nil {
		return err
	}
	if err := r.tasks.Patch(ctx, task, ifUnchanged(before)); err != nil {
		return fmt.Errorf("removing the finalizer: %w", err)
	}
	r.writes.record(task)
	return nil
}

// announceDeletion stores the TaskDeleted Event, except in a namespace that is
// being deleted itself: Events are refused there.
func (r *reconciler) announceDeletion(ctx context.Context, task *taskv1.Task) error {
	going, err := r.namespaceTerminating(ctx, task.Namespace)
	if err == nil && !going {
		err = r.announce(ctx, task, []transition{deleted(task)}, r.clock.Now())
	}
	if going || errors.Is(err, errNamespaceGoing) {
		logr.FromContextOrDiscard(ctx).V(1).Info("the deletion is not announced: the namespace takes no Events any more")
		return nil
	}
	return err
}

// namespaceTerminating asks the cache, which may not know it yet; the API
// server's refusal of the Event says the same.
func (r *reconciler) namespaceTerminating(ctx context.Context, name string) (bool, error) {
	var namespace corev1.Namespace
	err := r.tasks.Get(ctx, client.ObjectKey{Name: name}, &namespace, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading the namespace: %w", err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}
