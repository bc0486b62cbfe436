package combinedtask

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

func printed(events int) *searchv1.CombinedTask {
	combined := &searchv1.CombinedTask{}
	combined.Name, combined.ResourceVersion = "x", "7"
	combined.CreationTimestamp = metav1.NewTime(time.Now().Add(-5 * time.Minute))
	combined.Spec = taskv1.TaskSpec{Priority: 3, Deadline: metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)), TaskState: "Pending"}
	for i := range events {
		event := *taskEvent("a", string(rune('a'+i)), "u1", i)
		event.Message = "message"
		combined.Status.Events = append(combined.Status.Events, event)
	}
	combined.Status.EventsCount = int32(events)
	return combined
}

func tableOf(t *testing.T, object runtime.Object, options runtime.Object) *metav1.Table {
	t.Helper()
	result, err := table{}.convert(object, options)
	must(t, err)
	return result
}

func TestATableHasTasksColumnsAndWhatTheEventsSay(t *testing.T) {
	result := tableOf(t, printed(2), nil)
	var narrow, wide []string
	for _, column := range result.ColumnDefinitions {
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
		if column.Description == "" {
			t.Errorf("column %s has no description", column.Name)
		}
	}
	if got := strings.Join(narrow, ","); got != "Name,Priority,Deadline,TaskState,Events,Last Reason,Age" {
		t.Errorf("columns %s", got)
	}
	if len(wide) == 0 {
		t.Error("no column is for -o wide")
	}
	cells := result.Rows[0].Cells
	if len(cells) != len(result.ColumnDefinitions) {
		t.Fatalf("%d cells for %d columns", len(cells), len(result.ColumnDefinitions))
	}
	if want := []any{"x", int64(3), "2030-01-02T03:04:05Z", "Pending", int64(2), "Reason-b", "5m"}; !slices.Equal(cells[:7], want) {
		t.Errorf("cells %v, want %v", cells[:7], want)
	}
	if result.ResourceVersion != "7" || result.Rows[0].Object.Object == nil {
		t.Errorf("the table is %+v", result)
	}
}

func TestATaskWithoutEventsIsPrinted(t *testing.T) {
	if cells := tableOf(t, printed(0), nil).Rows[0].Cells; cells[4] != int64(0) || cells[5] != "<none>" {
		t.Errorf("cells %v", cells)
	}
}

func TestTheTableOfAListHasItsMetadata(t *testing.T) {
	rest := int64(3)
	list := &searchv1.CombinedTaskList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "token", RemainingItemCount: &rest},
		Items:    []searchv1.CombinedTask{*printed(1), *printed(2)},
	}
	result := tableOf(t, list, &metav1.TableOptions{NoHeaders: true})
	if len(result.Rows) != 2 || len(result.ColumnDefinitions) != 0 || result.ResourceVersion != "9" || result.Continue != "token" || *result.RemainingItemCount != 3 {
		t.Errorf("the table is %+v", result)
	}
	if len(tableOf(t, &searchv1.CombinedTaskList{}, nil).Rows) != 0 {
		t.Error("the table of an empty list has rows")
	}
}

func TestABookmarkIsPrinted(t *testing.T) {
	bookmark := &searchv1.CombinedTask{}
	bookmark.ResourceVersion = "9"
	if result := tableOf(t, bookmark, nil); len(result.Rows) != 1 || result.ResourceVersion != "9" {
		t.Errorf("the table is %+v", result)
	}
}

func TestOtherObjectsAreNotPrinted(t *testing.T) {
	if _, err := (table{}).convert(&taskv1.Task{}, nil); err == nil {
		t.Error("a Task is printed")
	}
}
