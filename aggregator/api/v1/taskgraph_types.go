package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// TaskGraph is what a task depends on, directly and through others: the answer
// of the subresource graph of ClusterTasks and CustomTasks. It is computed when
// it is read, from one list, and can't be watched.
//
// +kubebuilder:object:root=true
type TaskGraph struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name and namespace of the task that the graph is of. Its
	// resourceVersion is that of the list that the graph was computed from.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// root is the task itself.
	// +required
	Root TaskGraphNode `json:"root"`

	// truncated is true when the graph is too deep or too large to be shown
	// whole.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
}

// TaskGraphNode is one task of a graph.
type TaskGraphNode struct {
	// name of the task.
	Name string `json:"name"`

	// taskState of the task; none if it does not exist.
	// +optional
	TaskState taskv1.TaskState `json:"taskState,omitempty"`

	// missing is true for a task that does not exist.
	// +optional
	Missing bool `json:"missing,omitempty"`

	// cyclic is true where a task comes up below itself. What it depends on is
	// not shown again.
	// +optional
	Cyclic bool `json:"cyclic,omitempty"`

	// repeated is true for a task that stands elsewhere in the graph together
	// with what it depends on, which is not shown again.
	// +optional
	Repeated bool `json:"repeated,omitempty"`

	// dependsOn are the tasks that this one depends on, by name.
	// +optional
	// +listType=atomic
	DependsOn []TaskGraphNode `json:"dependsOn,omitempty"`
}
