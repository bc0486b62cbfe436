package operator

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// transition is something that happened to a Task once and is announced once.
type transition struct {
	// name tells this transition from every other one of the same Task, and is
	// the same each time that it is computed until the status has advanced.
	name    string
	reason  string // of the Event
	action  string // of the Event
	warning bool
	message string
}

// eventName is the name of the Event that announces t. UIDs are unique over
// time, so a Task created again under the same name shares no Event with its
// predecessor, and short enough for any Task's Event to have a valid name.
func (t transition) eventName(uid types.UID) string {
	return string(uid) + "." + t.name
}

func (t transition) eventType() string {
	if t.warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

func created(task *taskv1.Task) transition {
	return transition{
		name:    "created",
		reason:  taskv1.ReasonTaskCreated,
		action:  "Create",
		message: "Task created with " + describe(&task.Spec),
	}
}

// updated is named after the new generation: each one is announced for itself.
func updated(task *taskv1.Task) transition {
	return transition{
		name:    fmt.Sprintf("updated.%d", task.Generation),
		reason:  taskv1.ReasonTaskUpdated,
		action:  "Update",
		message: fmt.Sprintf("Task updated to %s (generation %d)", describe(&task.Spec), task.Generation),
	}
}

// finished is named after the last generation that the status had recorded
// when the Task became Finished: that number stands still until the transition
// is recorded, even if the spec changes again in between, and has moved on when
// the Task is finished for a second time.
func finished(task *taskv1.Task) transition {
	return transition{
		name:    fmt.Sprintf("finished.%d", task.Status.ObservedGeneration),
		reason:  taskv1.ReasonTaskFinished,
		action:  "Finish",
		message: "Task finished; its deadline is " + rfc3339(task.Spec.Deadline.Time),
	}
}

// overdue is named like finished, for the same reason.
func overdue(task *taskv1.Task) transition {
	return transition{
		name:    fmt.Sprintf("overdue.%d", task.Status.ObservedGeneration),
		reason:  taskv1.ReasonTaskOverdue,
		action:  "MissDeadline",
		warning: true,
		message: fmt.Sprintf("Task is %s after its deadline %s", task.Spec.TaskState, rfc3339(task.Spec.Deadline.Time)),
	}
}

func deleted(task *taskv1.Task) transition {
	return transition{
		name:    "deleted",
		reason:  taskv1.ReasonTaskDeleted,
		action:  "Delete",
		warning: true,
		message: fmt.Sprintf("Task deleted while %s", task.Spec.TaskState),
	}
}

func describe(spec *taskv1.TaskSpec) string {
	return fmt.Sprintf("priority %d, deadline %s, taskState %s", spec.Priority, rfc3339(spec.Deadline.Time), spec.TaskState)
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }
