package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

const (
	// recheckLimit bounds how long the controller sleeps until a deadline:
	// timers stand still while a laptop is suspended, clocks don't.
	recheckLimit = 10 * time.Minute
	// recheckFloor keeps a timer that fires a moment early from turning into a
	// busy loop.
	recheckFloor = 50 * time.Millisecond
)

// reconciler brings one Task at a time to where observe says that it should be.
type reconciler struct {
	// tasks reads Tasks from the cache, which holds what the controller needs
	// of them (see slim), and writes them to the API server. Only patches may
	// be written: an update would store the slimmed Task.
	tasks client.Client
	// events writes Events; it has no cache, so that no informer for them
	// starts.
	events client.Writer
	writes *writes
	clock  clock.PassiveClock
	// instance is the Events' reportingInstance.
	instance string
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	task := &taskv1.Task{}
	if err := r.tasks.Get(ctx, request.NamespacedName, task); err != nil {
		if apierrors.IsNotFound(err) {
			r.writes.forget(request.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading the Task: %w", err)
	}
	if wait := r.writes.pending(task); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}

	var result reconcile.Result
	var err error
	if task.DeletionTimestamp.IsZero() {
		result, err = r.reconcile(ctx, task)
	} else {
		err = r.finalize(ctx, task)
	}
	if outdated(err) {
		// The Task has changed or gone: the watch brings that, and with it the
		// next attempt. The delay is for a watch that is being renewed.
		logr.FromContextOrDiscard(ctx).V(1).Info("the Task has changed meanwhile", "reason", err.Error())
		return reconcile.Result{RequeueAfter: catchUpLimit}, nil
	}
	return result, err
}

// reconcile handles a Task that is not being deleted. A new one costs three
// requests: finalizer, Event, status.
func (r *reconciler) reconcile(ctx context.Context, task *taskv1.Task) (reconcile.Result, error) {
	// The finalizer comes first: a Task without it could be gone before its
	// deletion is announced.
	if err := r.addFinalizer(ctx, task); err != nil {
		return reconcile.Result{}, err
	}
	now := r.clock.Now()
	seen := observe(task, now)
	if err := r.announce(ctx, task, seen.transitions, now); err != nil {
		return r.notAnnounced(ctx, task, err, now)
	}
	if err := r.writeStatus(ctx, task, seen.status); err != nil {
		return reconcile.Result{}, err
	}
	if seen.expired {
		return reconcile.Result{}, r.deleteExpired(ctx, task)
	}
	return reconcile.Result{RequeueAfter: recheckAfter(seen.recheck, now)}, nil
}

func (r *reconciler) addFinalizer(ctx context.Context, task *taskv1.Task) error {
	before := task.DeepCopy()
	if !controllerutil.AddFinalizer(task, taskv1.Finalizer) {
		return nil
	}
	if err := r.tasks.Patch(ctx, task, ifUnchanged(before)); err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	r.writes.record(task)
	return nil
}

// writeStatus stores the status unless it is stored already.
func (r *reconciler) writeStatus(ctx context.Context, task *taskv1.Task, status taskv1.TaskStatus) error {
	if equality.Semantic.DeepEqual(task.Status, status) {
		return nil
	}
	before := task.DeepCopy()
	task.Status = status
	if err := r.tasks.Status().Patch(ctx, task, ifUnchanged(before)); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	r.writes.record(task)
	return nil
}

// deleteExpired deletes exactly the version that has expired: one that was
// opened again meanwhile stays.
func (r *reconciler) deleteExpired(ctx context.Context, task *taskv1.Task) error {
	exactly := client.Preconditions{UID: &task.UID, ResourceVersion: &task.ResourceVersion}
	if err := r.tasks.Delete(ctx, task, exactly); err != nil {
		return fmt.Errorf("deleting the finished Task after its ttlSecondsAfterFinished: %w", err)
	}
	return nil
}

// ifUnchanged makes a merge patch from before that is refused with a conflict
// if the Task has changed since before was read. Finalizers and conditions are
// lists, which a merge patch replaces whole.
func ifUnchanged(before *taskv1.Task) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// outdated says that a write was refused because the Task is not what the cache
// said.
func outdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

func recheckAfter(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return min(max(at.Sub(now), recheckFloor), recheckLimit)
}
