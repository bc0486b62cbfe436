package details

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// table prints a search.
type table struct{}

func (table) convert(object, options runtime.Object) (*metav1.Table, error) {
	list, ok := object.(*searchv1.TaskMatchList)
	if !ok {
		return nil, fmt.Errorf("print as a table: got a %T", object)
	}
	result := &metav1.Table{ListMeta: list.ListMeta}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		result.ColumnDefinitions = []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Name of the Task."},
			{Name: "Score", Type: "integer", Description: "How well the Task matches, in thousandths."},
			{Name: "Snippet", Type: "string", Description: "The part of the details that matches."},
			{Name: "TaskState", Type: "string", Priority: 1, Description: "Pending or Finished."},
		}
	}
	for i := range list.Items {
		match := &list.Items[i]
		result.Rows = append(result.Rows, metav1.TableRow{
			Cells:  []any{match.Name, match.Score, match.Snippet, string(match.Spec.TaskState)},
			Object: runtime.RawExtension{Object: match},
		})
	}
	return result, nil
}
