package demo

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

var morning = time.Date(2026, 6, 1, 6, 30, 0, 0, time.UTC)

func decodeSample(t *testing.T, number int, now time.Time) taskv1.Task {
	t.Helper()
	content, err := sampleTask(number, "default", now).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var task taskv1.Task
	if err := json.Unmarshal(content, &task); err != nil {
		t.Fatal(err)
	}
	return task
}

func TestSamplesAreValidAndDiffer(t *testing.T) {
	details := map[string]bool{}
	priorities := map[int32]int{}
	finished := 0
	const count = 1000
	for number := 1; number <= count; number++ {
		task := decodeSample(t, number, morning)
		taskv1.DefaultTaskSpec(&task.Spec)
		if errs := taskv1.ValidateTaskSpec(&task.Spec, field.NewPath("spec")); len(errs) > 0 {
			t.Errorf("%s: %v", task.Name, errs)
		}
		if warnings := taskv1.DeadlineWarnings(&task.Spec, nil, morning.Add(17*time.Hour)); len(warnings) > 0 {
			t.Errorf("%s: %v", task.Name, warnings)
		}
		details[task.Spec.Details] = true
		priorities[task.Spec.Priority]++
		if task.Spec.TaskState == taskv1.TaskStateFinished {
			finished++
		}
	}
	if len(details) != count || len(priorities) != 11 || finished != count/4 {
		t.Errorf("%d texts, %d priorities, %d finished", len(details), len(priorities), finished)
	}
}

func TestSamplesThatTheManualNames(t *testing.T) {
	third, second := decodeSample(t, 3, morning), decodeSample(t, 2, morning)
	if third.Name != "task-sample-3" || third.Spec.Priority != 3 {
		t.Errorf("%s has priority %d", third.Name, third.Spec.Priority)
	}
	if second.Spec.TaskState != "" {
		t.Errorf("%s is %s, and the user is asked to finish it", second.Name, second.Spec.TaskState)
	}
}

func TestSamplesStayTheSameForADay(t *testing.T) {
	if evening := morning.Add(17 * time.Hour); !reflect.DeepEqual(sampleTask(7, "default", morning), sampleTask(7, "default", evening)) {
		t.Error("in the evening it is another one")
	}
}

func TestDetailsAreSentences(t *testing.T) {
	for number := range 50 {
		text := sampleDetails(number)
		if strings.Contains(text, "  ") || len(text) < 60 || len(text) > 300 {
			t.Errorf("%q", text)
		}
	}
}
