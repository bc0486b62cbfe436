package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TaskState says how far a Task is.
// +kubebuilder:validation:Enum=Pending;Finished
type TaskState string

const (
	// TaskStatePending is the state of a Task that is still to be done.
	TaskStatePending TaskState = "Pending"
	// TaskStateFinished is the state of a Task that is done. Setting it back
	// to Pending opens the Task again.
	TaskStateFinished TaskState = "Finished"
)

// Bounds of spec.priority.
const (
	MinPriority = 0
	MaxPriority = 10
)

// TaskSpec is what the user wants.
type TaskSpec struct {
	// 0 is a valid priority, so the field is never left out: with omitempty a
	// Go client's update of a Task of priority 0 would be refused.

	// priority of the Task: 0 is the lowest, 10 the highest.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Priority int32 `json:"priority"`

	// details say in free text what is to be done.
	// +optional
	Details string `json:"details,omitempty"`

	// The format date-time alone lets through what Go's RFC 3339 parser
	// refuses (lower case, leap seconds), and one such object would stop every
	// typed client that lists Tasks; the pattern leaves only what both accept.

	// deadline is when the Task should be finished, as RFC 3339 time, 1970 or
	// later. A Task that is pending after it is overdue.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('1970-01-01T00:00:00Z')",message="must be 1970-01-01T00:00:00Z or later"
	// +kubebuilder:validation:XValidation:rule="self <= timestamp('9999-12-31T23:59:59Z')",message="must be 9999-12-31T23:59:59Z or earlier"
	Deadline metav1.Time `json:"deadline"`

	// taskState is Pending until somebody sets it to Finished.
	// +optional
	// +default="Pending"
	// +kubebuilder:default=Pending
	TaskState TaskState `json:"taskState,omitempty"`

	// ttlSecondsAfterFinished deletes the Task this many seconds after
	// status.finishedAt. 0 deletes it at once; without it the Task stays.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// TaskStatus is what the controller observed and announced.
type TaskStatus struct {
	// observedGeneration is the newest generation of the spec whose Events
	// are stored. Nothing up to it is ever announced again.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions hold at least Ready and Overdue.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// finishedAt is when the controller saw that the Task had become
	// Finished. A Task that is opened again loses it.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// Task is a piece of work with a priority and a deadline.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=tasks,singular=task,shortName=tk,scope=Namespaced
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Deadline",type=string,format=date-time,JSONPath=`.spec.deadline`
// +kubebuilder:printcolumn:name="TaskState",type=string,JSONPath=`.spec.taskState`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.spec.priority`
// +kubebuilder:selectablefield:JSONPath=`.spec.taskState`
type Task struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	// +required
	Spec TaskSpec `json:"spec"`

	// status is what the controller observed and announced.
	// +optional
	Status TaskStatus `json:"status,omitempty"`
}

// TaskList is a list of Tasks.
//
// +kubebuilder:object:root=true
type TaskList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the Tasks.
	Items []Task `json:"items"`
}
