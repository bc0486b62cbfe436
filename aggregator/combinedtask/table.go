package combinedtask

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// table prints CombinedTasks: the columns of Task and what the Events say.
type table struct{}

// columns are Task's, as its CustomResourceDefinition declares them, with the
// Events' in front of Age. Those with a priority above 0 are for -o wide.
func (table) columns() []metav1.TableColumnDefinition {
	descriptions := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: descriptions["name"]},
		{Name: "Priority", Type: "integer", Description: "Priority of the Task: 0 is the lowest, 10 the highest."},
		{Name: "Deadline", Type: "string", Format: "date-time", Description: "When the Task should be finished."},
		{Name: "TaskState", Type: "string", Description: "Pending or Finished."},
		{Name: "Events", Type: "integer", Description: "How many Events of the Task exist."},
		{Name: "Last Reason", Type: "string", Description: "The reason of the newest Event."},
		{Name: "Age", Type: "date", Description: descriptions["creationTimestamp"]},
		{Name: "Last Event", Type: "date", Priority: 1, Description: "How long ago the newest Event was seen."},
		{Name: "Message", Type: "string", Priority: 1, Description: "The message of the newest Event."},
	}
}

func (t table) convert(object, options runtime.Object) (*metav1.Table, error) {
	result := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		result.ColumnDefinitions = t.columns()
	}
	switch object := object.(type) {
	case *searchv1.CombinedTask:
		result.ResourceVersion = object.ResourceVersion
		result.Rows = []metav1.TableRow{t.row(object)}
	case *searchv1.CombinedTaskList:
		result.ListMeta = object.ListMeta
		result.Rows = make([]metav1.TableRow, 0, len(object.Items))
		for i := range object.Items {
			result.Rows = append(result.Rows, t.row(&object.Items[i]))
		}
	default:
		return nil, fmt.Errorf("print as a table: %T is neither a CombinedTask nor a list of them", object)
	}
	return result, nil
}

func (table) row(task *searchv1.CombinedTask) metav1.TableRow {
	reason, message, seen := lastEvent(task.Status.Events)
	return metav1.TableRow{
		Cells: []any{
			task.Name,
			int64(task.Spec.Priority),
			deadline(task.Spec.Deadline),
			string(task.Spec.TaskState),
			int64(task.Status.EventsCount),
			reason,
			metatable.ConvertToHumanReadableDateType(task.CreationTimestamp),
			seen,
			message,
		},
		Object: runtime.RawExtension{Object: task},
	}
}

func deadline(t metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// lastEvent describes the newest Event, in kubectl's words for a missing one.
func lastEvent(events []corev1.Event) (reason, message, seen string) {
	if len(events) == 0 {
		return "<none>", "", "<none>"
	}
	last := &events[len(events)-1]
	return last.Reason, last.Message, metatable.ConvertToHumanReadableDateType(metav1.NewTime(occurredAt(last)))
}
