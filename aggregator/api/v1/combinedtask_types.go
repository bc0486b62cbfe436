package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// CombinedTask is a Task together with the Events that are about it. It can be
// read and watched, not written: it changes when the Task or one of its Events
// does.
//
// Its name, namespace, UID, labels, annotations and times are the Task's. Its
// resourceVersion is not: it is a number of the join's own, see
// status.taskResourceVersion. managedFields and the annotation
// kubectl.kubernetes.io/last-applied-configuration are left out.
//
// +kubebuilder:object:root=true
type CombinedTask struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the Task's, except for resourceVersion.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the Task's spec.
	// +required
	Spec taskv1.TaskSpec `json:"spec"`

	// status is the Task's status and its Events.
	// +optional
	Status CombinedTaskStatus `json:"status,omitempty"`
}

// CombinedTaskStatus is a Task's status and its Events.
type CombinedTaskStatus struct {
	taskv1.TaskStatus `json:",inline"`

	// taskResourceVersion is the Task's own resourceVersion, the one that an
	// update of the Task has to name.
	// +optional
	TaskResourceVersion string `json:"taskResourceVersion,omitempty"`

	// eventsCount is how many Events of the Task exist, those that events
	// leaves out included.
	EventsCount int32 `json:"eventsCount"`

	// eventsTruncated is true when events does not hold every Event that
	// exists: the oldest are left out beyond a limit per Task.
	// +optional
	EventsTruncated bool `json:"eventsTruncated,omitempty"`

	// events are the Events in the Task's namespace whose label
	// example.example.com/task-uid is the Task's UID, newest last, without
	// their managedFields.
	// +optional
	// +listType=atomic
	Events []corev1.Event `json:"events,omitempty"`
}

// CombinedTaskList is a list of CombinedTasks.
//
// +kubebuilder:object:root=true
type CombinedTaskList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the list. Its resourceVersion is the newest number that the
	// join had handed out when the list was made.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the CombinedTasks, by namespace and name.
	Items []CombinedTask `json:"items"`
}
