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

// StoredTaskStatus is what was observed of a ClusterTask or CustomTask. It is
// written through the subresource status.
type StoredTaskStatus struct {
	taskv1.TaskStatus `json:",inline"`
}
