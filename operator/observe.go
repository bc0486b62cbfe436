package operator

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// observation is what a look at a Task at one moment leads to. It is computed
// from the Task and the time alone.
type observation struct {
	// transitions are to be announced, in this order, before status is stored.
	transitions []transition
	// status is what the Task's status must be after that. It equals the
	// Task's own status when there is nothing to write.
	status taskv1.TaskStatus
	// expired says that the Task has outlived its ttlSecondsAfterFinished.
	expired bool
	// recheck is when the clock alone changes something; zero means never.
	recheck time.Time
}

// observe looks at a Task that is not being deleted.
func observe(task *taskv1.Task, now time.Time) observation {
	var seen observation
	task.Status.DeepCopyInto(&seen.status)
	isFinished := task.Spec.TaskState == taskv1.TaskStateFinished
	isOverdue, wasOverdue := overdueAt(task, now)

	finishing := isFinished && task.Status.FinishedAt == nil
	switch {
	case task.Status.ObservedGeneration == 0:
		seen.transitions = append(seen.transitions, created(task))
	case task.Status.ObservedGeneration < task.Generation && !finishing:
		seen.transitions = append(seen.transitions, updated(task))
	}
	if finishing {
		seen.transitions = append(seen.transitions, finished(task))
		seen.status.FinishedAt = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	if !isFinished {
		seen.status.FinishedAt = nil
	}
	if isOverdue && !wasOverdue {
		seen.transitions = append(seen.transitions, overdue(task))
	}

	seen.status.ObservedGeneration = task.Generation
	setCondition(&seen.status, readyCondition(), task.Generation, now)
	setCondition(&seen.status, overdueCondition(isFinished, isOverdue), task.Generation, now)

	seen.schedule(task, isFinished, isOverdue, now)
	return seen
}

// overdueAt says whether the Task is overdue now, and whether its status says
// so already. What the status says of this very generation is not taken back,
// so a clock that is set back announces nothing for a second time.
func overdueAt(task *taskv1.Task, now time.Time) (is, was bool) {
	condition := meta.FindStatusCondition(task.Status.Conditions, taskv1.ConditionOverdue)
	was = condition != nil && condition.Status == metav1.ConditionTrue
	if task.Spec.TaskState == taskv1.TaskStateFinished {
		return false, was
	}
	passed := !now.Before(task.Spec.Deadline.Time)
	return passed || was && condition.ObservedGeneration == task.Generation, was
}

// schedule decides when the Task is looked at again, and whether its time is
// up. That a Task is expired counts only when its status is stored: finishedAt
// must have been readable before the Task goes.
func (o *observation) schedule(task *taskv1.Task, isFinished, isOverdue bool, now time.Time) {
	if !isFinished {
		if !isOverdue {
			o.recheck = task.Spec.Deadline.Time
		}
		return
	}
	ttl := task.Spec.TTLSecondsAfterFinished
	if ttl == nil {
		return
	}
	expiry := o.status.FinishedAt.Add(time.Duration(*ttl) * time.Second)
	if now.Before(expiry) {
		o.recheck = expiry
		return
	}
	o.expired = true
}

func readyCondition() metav1.Condition {
	return metav1.Condition{
		Type:    taskv1.ConditionReady,
		Status:  metav1.ConditionTrue,
		Reason:  taskv1.ReasonObserved,
		Message: "Everything about this generation is announced",
	}
}

func refusedCondition(err error) metav1.Condition {
	return metav1.Condition{
		Type:    taskv1.ConditionReady,
		Status:  metav1.ConditionFalse,
		Reason:  taskv1.ReasonEventRefused,
		Message: truncate("The API server refuses an Event of this Task: "+err.Error(), noteLimit),
	}
}

func overdueCondition(isFinished, isOverdue bool) metav1.Condition {
	condition := metav1.Condition{
		Type:    taskv1.ConditionOverdue,
		Status:  metav1.ConditionFalse,
		Reason:  taskv1.ReasonDeadlineAhead,
		Message: "The deadline has not passed",
	}
	switch {
	case isFinished:
		condition.Reason, condition.Message = taskv1.ReasonFinished, "The Task is finished"
	case isOverdue:
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = taskv1.ReasonDeadlinePassed, "The deadline of the unfinished Task has passed"
	}
	return condition
}

// setCondition sets a condition of the given generation; its
// lastTransitionTime moves only when its status changes.
func setCondition(status *taskv1.TaskStatus, condition metav1.Condition, generation int64, now time.Time) {
	condition.ObservedGeneration = generation
	condition.LastTransitionTime = metav1.Time{Time: now.Truncate(time.Second)}
	meta.SetStatusCondition(&status.Conditions, condition)
}
