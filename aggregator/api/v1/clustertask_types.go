package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterTask is a piece of work with a priority and a deadline that belongs to
// no namespace.
//
// +kubebuilder:object:root=true
type ClusterTask struct {
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

// ClusterTaskList is a list of ClusterTasks.
//
// +kubebuilder:object:root=true
type ClusterTaskList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ClusterTasks.
	Items []ClusterTask `json:"items"`
}
