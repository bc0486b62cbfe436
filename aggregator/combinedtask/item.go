package combinedtask

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/view"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// Fields that selectors can use, the same as Task's.
const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
	fieldPriority  = "spec.priority"
	fieldTaskState = "spec.taskState"
)

// item is one state of a CombinedTask. It never changes; it shares its parts
// with the states before and after it.
type item struct {
	task   *taskv1.Task
	events []*corev1.Event // newest last, those that are shown
	count  int             // Events that exist, those that are not shown included
}

var _ view.Item = (*item)(nil)

// Key implements view.Item.
func (i *item) Key() view.Key {
	return view.Key{Namespace: i.task.Namespace, Name: i.task.Name}
}

// Labels implements view.Item.
func (i *item) Labels() labels.Labels { return labels.Set(i.task.Labels) }

// Fields implements view.Item.
func (i *item) Fields() fields.Fields { return taskFields{i.task} }

// Object implements view.Item.
func (i *item) Object(resourceVersion string) runtime.Object {
	return i.combined(resourceVersion)
}

func (i *item) combined(resourceVersion string) *searchv1.CombinedTask {
	combined := &searchv1.CombinedTask{
		ObjectMeta: i.task.ObjectMeta,
		Spec:       i.task.Spec,
		Status: searchv1.CombinedTaskStatus{
			TaskStatus:          i.task.Status,
			TaskResourceVersion: i.task.ResourceVersion,
			EventsCount:         int32(i.count),
			EventsTruncated:     len(i.events) < i.count,
		},
	}
	combined.ResourceVersion = resourceVersion
	if len(i.events) > 0 {
		combined.Status.Events = make([]corev1.Event, len(i.events))
		for n, event := range i.events {
			combined.Status.Events[n] = *event
		}
	}
	return combined
}

// equal tells whether two states look the same to clients. Parts that did not
// change are shared, so pointers tell.
func (i *item) equal(other *item) bool {
	if i.task != other.task || i.count != other.count || len(i.events) != len(other.events) {
		return false
	}
	for n, event := range i.events {
		if event != other.events[n] {
			return false
		}
	}
	return true
}

// taskFields are the selectable fields of a Task, without a map for each.
type taskFields struct {
	task *taskv1.Task
}

// Has implements fields.Fields.
func (taskFields) Has(field string) bool {
	switch field {
	case fieldName, fieldNamespace, fieldPriority, fieldTaskState:
		return true
	}
	return false
}

// Get implements fields.Fields.
func (f taskFields) Get(field string) string {
	switch field {
	case fieldName:
		return f.task.Name
	case fieldNamespace:
		return f.task.Namespace
	case fieldPriority:
		return strconv.FormatInt(int64(f.task.Spec.Priority), 10)
	case fieldTaskState:
		return string(f.task.Spec.TaskState)
	}
	return ""
}
