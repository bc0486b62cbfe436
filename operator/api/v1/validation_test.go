package v1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func at(t *testing.T, text string) metav1.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return metav1.Time{Time: parsed}
}

func TestValidateTaskSpecNamesTheField(t *testing.T) {
	tests := map[string]struct {
		change func(*TaskSpec)
		field  string // "" means valid
	}{
		"a valid spec":                    {change: func(*TaskSpec) {}},
		"priority 0":                      {change: func(s *TaskSpec) { s.Priority = 0 }},
		"priority 10":                     {change: func(s *TaskSpec) { s.Priority = 10 }},
		"priority 11":                     {change: func(s *TaskSpec) { s.Priority = 11 }, field: "spec.priority"},
		"priority -1":                     {change: func(s *TaskSpec) { s.Priority = -1 }, field: "spec.priority"},
		"no deadline":                     {change: func(s *TaskSpec) { s.Deadline = metav1.Time{} }, field: "spec.deadline"},
		"deadline at the start of 1970":   {change: func(s *TaskSpec) { s.Deadline = at(t, "1970-01-01T00:00:00Z") }},
		"deadline before 1970":            {change: func(s *TaskSpec) { s.Deadline = at(t, "1969-12-31T23:59:59Z") }, field: "spec.deadline"},
		"deadline before 1970 in UTC":     {change: func(s *TaskSpec) { s.Deadline = at(t, "1970-01-01T00:30:00+01:00") }, field: "spec.deadline"},
		"deadline at the end of 9999":     {change: func(s *TaskSpec) { s.Deadline = at(t, "9999-12-31T23:59:59Z") }},
		"deadline after 9999 in UTC":      {change: func(s *TaskSpec) { s.Deadline = at(t, "9999-12-31T23:59:59-01:00") }, field: "spec.deadline"},
		"taskState Finished":              {change: func(s *TaskSpec) { s.TaskState = TaskStateFinished }},
		"an unknown taskState":            {change: func(s *TaskSpec) { s.TaskState = "Done" }, field: "spec.taskState"},
		"a taskState that is not default": {change: func(s *TaskSpec) { s.TaskState = "" }, field: "spec.taskState"},
		"ttlSecondsAfterFinished 0":       {change: func(s *TaskSpec) { s.TTLSecondsAfterFinished = ptr.To[int32](0) }},
		"ttlSecondsAfterFinished -1":      {change: func(s *TaskSpec) { s.TTLSecondsAfterFinished = ptr.To[int32](-1) }, field: "spec.ttlSecondsAfterFinished"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := TaskSpec{Priority: 3, Deadline: at(t, "2030-01-01T00:00:00Z"), TaskState: TaskStatePending}
			test.change(&spec)
			errs := ValidateTaskSpec(&spec, field.NewPath("spec"))
			switch {
			case test.field == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs)
			case test.field != "" && (len(errs) != 1 || errs[0].Field != test.field):
				t.Errorf("want one error about %s, got %v", test.field, errs)
			}
		})
	}
}

func TestDefaultTaskSpecMakesTasksPending(t *testing.T) {
	spec := TaskSpec{}
	DefaultTaskSpec(&spec)
	if spec.TaskState != TaskStatePending {
		t.Errorf("taskState is %q", spec.TaskState)
	}
	spec.TaskState = TaskStateFinished
	DefaultTaskSpec(&spec)
	if spec.TaskState != TaskStateFinished {
		t.Errorf("a finished task became %q", spec.TaskState)
	}
}

func TestDeadlineWarnings(t *testing.T) {
	now := at(t, "2026-06-01T12:00:00Z").Time
	spec := func(deadline string, state TaskState) *TaskSpec {
		return &TaskSpec{Deadline: at(t, deadline), TaskState: state}
	}
	past, earlier, future := "2026-06-01T11:59:59Z", "2026-05-01T00:00:00Z", "2026-06-01T12:00:01Z"
	tests := map[string]struct {
		spec, old *TaskSpec
		warns     bool
	}{
		"created with a deadline ahead":             {spec: spec(future, TaskStatePending)},
		"created with a deadline in the past":       {spec: spec(past, TaskStatePending), warns: true},
		"created finished":                          {spec: spec(past, TaskStateFinished)},
		"moved into the past":                       {spec: spec(past, TaskStatePending), old: spec(future, TaskStatePending), warns: true},
		"moved from past to past":                   {spec: spec(past, TaskStatePending), old: spec(earlier, TaskStatePending), warns: true},
		"changed otherwise after the deadline":      {spec: spec(past, TaskStatePending), old: spec(past, TaskStatePending)},
		"the same deadline written in another zone": {spec: spec("2026-06-01T13:59:59+02:00", TaskStatePending), old: spec(past, TaskStatePending)},
		"opened again after the deadline":           {spec: spec(past, TaskStatePending), old: spec(past, TaskStateFinished)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			warnings := DeadlineWarnings(test.spec, test.old, now)
			if warns := len(warnings) > 0; warns != test.warns {
				t.Fatalf("warnings: %q", warnings)
			}
			if test.warns && !strings.Contains(warnings[0], "spec.deadline") {
				t.Errorf("%q does not name the field", warnings[0])
			}
		})
	}
}

func TestSetTaskLabels(t *testing.T) {
	spec := &TaskSpec{Priority: 3, Deadline: at(t, "2030-01-01T00:00:00.75+01:00")}
	given := map[string]string{"team": "blue", LabelPriority: "7"}
	got := SetTaskLabels(given, spec)
	want := map[string]string{"team": "blue", LabelPriority: "3", LabelDeadline: "1893452400"}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("label %s is %q, want %q", key, got[key], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("labels are %v, want %v", got, want)
	}
	if given[LabelPriority] != "7" || len(given) != 2 {
		t.Errorf("the given map was changed to %v", given)
	}
	if SetTaskLabels(nil, spec)[LabelPriority] != "3" {
		t.Error("nil labels were not replaced")
	}
	if allocations := testing.AllocsPerRun(10, func() { got = SetTaskLabels(got, spec) }); len(got) != 3 || allocations > 5 {
		t.Errorf("labels that are right already cost %v allocations", allocations)
	}
}

func TestTaskLabelsOfInvalidSpecsAreValidLabels(t *testing.T) {
	for name, spec := range map[string]*TaskSpec{
		"negative priority":    {Priority: -5, Deadline: at(t, "2030-01-01T00:00:00Z")},
		"no deadline":          {Priority: 1},
		"deadline before 1970": {Priority: 1, Deadline: at(t, "1960-01-01T00:00:00Z")},
		"the largest of all":   {Priority: 1<<31 - 1, Deadline: at(t, "9999-12-31T23:59:59Z")},
	} {
		for key, value := range TaskLabels(spec) {
			if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
				t.Errorf("%s: label %s=%s: %v", name, key, value, errs)
			}
		}
	}
}

func TestPriorityZeroIsWritten(t *testing.T) {
	data, err := json.Marshal(TaskSpec{Deadline: at(t, "2030-01-01T00:00:00Z")})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"priority":0`) {
		t.Errorf("priority 0 is missing in %s", data)
	}
}
