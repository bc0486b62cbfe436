package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CustomTask is a piece of work with a priority and a deadline in a namespace,
// stored by the aggregated API itself.
//
// +kubebuilder:object:root=true
type CustomTask struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	// +required
	Spec StoredTaskSpec `json:"spec"`

	// status is what was observed.
	// +optional
	Status StoredTaskStatus `json:"status,omitempty"`
}

// CustomTaskList is a list of CustomTasks.
//
// +kubebuilder:object:root=true
type CustomTaskList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the CustomTasks.
	Items []CustomTask `json:"items"`
}
