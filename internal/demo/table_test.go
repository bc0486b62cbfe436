package demo

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func tableOf(rows ...[]any) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Events"}}}
	for _, cells := range rows {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	return table
}

func TestCheckTable(t *testing.T) {
	fresh := seededTask{name: "a", changed: true}
	old := seededTask{name: "b"}
	var many []seededTask
	var rows [][]any
	for i := range 3 * tableRows {
		many = append(many, seededTask{name: fmt.Sprint(i), changed: true})
		if i < tableRows {
			rows = append(rows, []any{fmt.Sprint(i), int64(1)})
		}
	}
	tests := map[string]struct {
		table  *metav1.Table
		seeded []seededTask
		wrong  string // part of the error; "" means that the table will do
	}{
		"all with Events":              {table: tableOf([]any{"a", int64(2)}, []any{"b", int64(1)}), seeded: []seededTask{fresh, old}},
		"an old Task without Events":   {table: tableOf([]any{"a", int64(2)}, []any{"b", int64(0)}), seeded: []seededTask{fresh, old}},
		"a new Task without Events":    {table: tableOf([]any{"a", int64(0)}, []any{"b", int64(1)}), seeded: []seededTask{fresh, old}, wrong: "a has no Events"},
		"a Task is missing":            {table: tableOf([]any{"a", int64(2)}), seeded: []seededTask{fresh, old}, wrong: "1 of 2"},
		"a page of many":               {table: tableOf(rows...), seeded: many},
		"a table of something else":    {table: &metav1.Table{Rows: []metav1.TableRow{{}}}, seeded: []seededTask{fresh}, wrong: "columns"},
		"numbers as JSON decodes them": {table: tableOf([]any{"a", float64(0)}), seeded: []seededTask{fresh}, wrong: "a has no Events"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkTable(test.table, test.seeded)
			if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("error is %v", err)
			}
		})
	}
}
