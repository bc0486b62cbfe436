package stored

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// table prints both kinds with Task's columns, and with -o wide the details and
// what follows from dependsOn.
type table struct{}

func (table) columns() []metav1.TableColumnDefinition {
	descriptions := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: descriptions["name"]},
		{Name: "Priority", Type: "integer", Description: "Priority of the task: 0 is the lowest, 10 the highest."},
		{Name: "Deadline", Type: "string", Format: "date-time", Description: "When the task should be finished."},
		{Name: "TaskState", Type: "string", Description: "Pending or Finished."},
		{Name: "Age", Type: "date", Description: descriptions["creationTimestamp"]},
		{Name: "Details", Type: "string", Priority: 1, Description: "What is to be done."},
		{Name: "Blocked By", Type: "integer", Priority: 1, Description: "How many tasks have to be finished first."},
		{Name: "Dependents", Type: "integer", Priority: 1, Description: "How many tasks depend on this one."},
	}
}

// ConvertToTable implements rest.TableConvertor.
func (t table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	result := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		result.ColumnDefinitions = t.columns()
	}
	add := func(object runtime.Object) error {
		objectMeta, spec, status, ok := parts(object)
		if !ok {
			return fmt.Errorf("print as a table: got a %T", object)
		}
		task := spec.TaskSpec()
		deadline := ""
		if !task.Deadline.IsZero() {
			deadline = task.Deadline.UTC().Format(time.RFC3339)
		}
		result.Rows = append(result.Rows, metav1.TableRow{
			Cells: []any{
				objectMeta.Name, int64(task.Priority), deadline, string(task.TaskState),
				metatable.ConvertToHumanReadableDateType(objectMeta.CreationTimestamp), task.Details,
				int64(status.BlockedByCount), int64(status.DependentsCount),
			},
			Object: runtime.RawExtension{Object: object},
		})
		return nil
	}
	if list, err := meta.ListAccessor(object); err == nil {
		result.ResourceVersion, result.Continue, result.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
		return result, meta.EachListItem(object, add)
	}
	if one, err := meta.CommonAccessor(object); err == nil {
		result.ResourceVersion = one.GetResourceVersion()
	}
	return result, add(object)
}
