package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// TaskMatch is a Task whose details were found by a full-text search: an item
// of the resource details, which can only be listed, with the query parameter q.
//
// +kubebuilder:object:root=true
type TaskMatch struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the Task's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// score says how well the Task matches, in thousandths; the list begins
	// with the highest. Scores of different searches can't be compared.
	Score int64 `json:"score"`

	// snippet is the part of the details with the most words that were searched
	// for, which stand between [ and ].
	// +optional
	Snippet string `json:"snippet,omitempty"`

	// spec is the Task's spec.
	// +required
	Spec taskv1.TaskSpec `json:"spec"`

	// status is the Task's status.
	// +optional
	Status taskv1.TaskStatus `json:"status,omitempty"`
}

// TaskMatchList is the answer to a full-text search.
//
// +kubebuilder:object:root=true
type TaskMatchList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the matches, best first, and by namespace and name where they
	// are equally good.
	Items []TaskMatch `json:"items"`
}
