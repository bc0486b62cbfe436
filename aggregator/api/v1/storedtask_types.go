package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// StoredTaskSpec is what the user wants of a ClusterTask or CustomTask: the
// fields of a Task's spec, with the same names, limits and defaults.
type StoredTaskSpec struct {
	// A pointer, though it is required: 0 is a valid priority, and without a
	// schema in front that checks what is there a missing one has to be told
	// from it.

	// priority of the task: 0 is the lowest, 10 the highest.
	// +required
	Priority *int32 `json:"priority"`

	// details say in free text what is to be done.
	// +optional
	Details string `json:"details,omitempty"`

	// deadline is when the task should be finished, as RFC 3339 time, 1970 or
	// later.
	// +required
	Deadline metav1.Time `json:"deadline"`

	// taskState is Pending until somebody sets it to Finished.
	// +optional
	// +default="Pending"
	TaskState taskv1.TaskState `json:"taskState,omitempty"`

	// ttlSecondsAfterFinished is kept for clients; nothing here deletes a task
	// by itself.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// dependsOn names tasks of the same kind, and in the same namespace, that
	// are to be finished first. They need not exist yet. A task may not depend
	// on itself, neither directly nor through others.
	// +optional
	// +listType=set
	DependsOn []string `json:"dependsOn,omitempty"`
}

// TaskSpec is the same as a Task's spec, where a missing priority is 0.
func (s *StoredTaskSpec) TaskSpec() taskv1.TaskSpec {
	spec := taskv1.TaskSpec{
		Details:                 s.Details,
		Deadline:                s.Deadline,
		TaskState:               s.TaskState,
		TTLSecondsAfterFinished: s.TTLSecondsAfterFinished,
	}
	if s.Priority != nil {
		spec.Priority = *s.Priority
	}
	return spec
}

// ConditionCyclic is the type of the condition of a task that depends on itself
// in spite of all checks.
const ConditionCyclic = "Cyclic"

// StoredTaskStatus is what was observed of a ClusterTask or CustomTask. It is
// written through the subresource status; what follows from dependsOn, by the
// API server itself.
type StoredTaskStatus struct {
	taskv1.TaskStatus `json:",inline"`

	// blockedBy are the names in dependsOn of tasks that are not finished, or
	// don't exist, by name: the first 100.
	// +optional
	// +listType=atomic
	BlockedBy []string `json:"blockedBy,omitempty"`

	// blockedByCount is how many there are.
	BlockedByCount int32 `json:"blockedByCount"`

	// dependentsCount is how many tasks name this one in their dependsOn.
	DependentsCount int32 `json:"dependentsCount"`
}
