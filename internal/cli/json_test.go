package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/taskctl-dev/taskctl/internal/control"
	"github.com/taskctl-dev/taskctl/internal/demo"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// TestEveryJSONFieldIsDocumented compares what the commands print with the
// tables of docs/json.md.
func TestEveryJSONFieldIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	for heading, values := range map[string][]any{
		"`up`":            {supervisor.Event{}},
		"`status`":        {control.Status{}},
		"`list`":          {listResult{}},
		"`down`":          {downResult{}},
		"`demo`":          {demo.Result{}},
		"`logs`":          {exportResult{}},
		"`kubeconfig`":    {kubeconfigResult{}},
		"`doctor`":        {doctorResult{}},
		"`version`":       {versions{}},
		"`storage serve`": {servedResult{}},
	} {
		_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
		if !found {
			t.Errorf("docs/json.md has no section %s", heading)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, value := range values {
			for _, field := range jsonFields(reflect.TypeOf(value)) {
				if !strings.Contains(section, "`"+field+"`") && !strings.Contains(section, `"`+field+`"`) {
					t.Errorf("the section %s does not say what %q is", heading, field)
				}
			}
		}
	}
}

// jsonFields are the names of a struct's fields in JSON, and of those within.
// What list has within is what status has.
func jsonFields(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		names = append(names, name)
		within := field.Type
		for within.Kind() == reflect.Pointer || within.Kind() == reflect.Slice {
			within = within.Elem()
		}
		if within.Kind() == reflect.Struct && within != reflect.TypeFor[control.Status]() {
			names = append(names, jsonFields(within)...)
		}
	}
	return names
}
