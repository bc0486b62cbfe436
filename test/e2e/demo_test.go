package e2e

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/test/harness"
)

// limit bounds one command, and one wait for a condition.
const limit = 30 * time.Second

// TestDemo walks the way of a newcomer: up, demo, the commands that the README
// shows, down, up, and everything is still there.
func TestDemo(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	a := harness.StartIn(t, dataDir)
	demo := mustSucceed(t, a.Taskctl(t.Context(), "demo"))
	contains(t, demo.Stdout, "task-sample-1", "task-sample-10", "TaskCreated")

	t.Run("tasks are selected by label and field", func(t *testing.T) {
		out := kubectl(t, a, "get", "tasks", "--selector", "example.example.com/priority=3", "--field-selector", "spec.priority=3", "-o", "name")
		if want := "task.example.example.com/task-sample-3\n"; out != want {
			t.Errorf("got %q, want %q", out, want)
		}
	})

	t.Run("an event of a task is found and has its times", func(t *testing.T) {
		out := kubectl(t, a, "get", "events", "--field-selector", "involvedObject.kind=Task,involvedObject.name=task-sample-2")
		contains(t, out, "TaskCreated", "task/task-sample-2")
		if strings.Contains(out, "<unknown>") {
			t.Errorf("an event has no time:\n%s", out)
		}
	})

	t.Run("a finished task gets its status and its event", func(t *testing.T) {
		kubectl(t, a, "patch", "tasks", "task-sample-2", "--type=json", `-p=[{"op":"replace","path":"/spec/taskState","value":"Finished"}]`)
		kubectl(t, a, "wait", "--for=jsonpath={.status.finishedAt}", "tasks/task-sample-2", "--timeout=20s")
		eventually(t, "TaskFinished is stored", func() bool {
			return strings.Contains(kubectl(t, a, "get", "combinedtasks", "task-sample-2", "-o", "jsonpath={.status.events[*].reason}"), "TaskFinished")
		})
	})

	t.Run("combinedtasks is one table", func(t *testing.T) {
		out := kubectl(t, a, "get", "combinedtasks", "-A")
		contains(t, out, "NAMESPACE", "PRIORITY", "DEADLINE", "TASKSTATE", "EVENTS", "task-sample-10")
	})

	t.Run("one combinedtask is one object with its events", func(t *testing.T) {
		out := kubectl(t, a, "get", "combinedtasks", "-n", "default", "task-sample-5", "-o", "json")
		var object struct {
			Kind     string
			Metadata struct{ Name, UID string }
			Status   struct {
				Events []struct {
					Reason string
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind != "CombinedTask" || object.Metadata.Name != "task-sample-5" || object.Metadata.UID == "" {
			t.Errorf("got %+v", object)
		}
		if len(object.Status.Events) == 0 || object.Status.Events[0].Reason != "TaskCreated" {
			t.Errorf("status.events is %+v, want TaskCreated first", object.Status.Events)
		}
	})

	t.Run("explain knows the aggregated kind", func(t *testing.T) {
		contains(t, kubectl(t, a, "explain", "combinedtasks.status.events"), "CombinedTask", "reason")
		contains(t, kubectl(t, a, "explain", "tasks.spec.priority"), "priority")
	})

	t.Run("a deleted task goes and says so", func(t *testing.T) {
		kubectl(t, a, "delete", "tasks", "task-sample-2", "--timeout=20s")
		contains(t, kubectl(t, a, "get", "events", "--field-selector", "involvedObject.name=task-sample-2"), "TaskDeleted")
	})

	before := kubectl(t, a, "get", "tasks", "-o", "jsonpath={range .items[*]}{.metadata.uid} {end}")
	a.Stop()
	again := harness.StartIn(t, dataDir)
	after := kubectl(t, again, "get", "tasks", "-o", "jsonpath={range .items[*]}{.metadata.uid} {end}")
	if before != after || len(strings.Fields(after)) != 9 {
		t.Errorf("before the restart %q, after it %q; want the same nine tasks", before, after)
	}
	eventually(t, "combinedtasks are back", func() bool {
		return len(strings.Fields(kubectl(t, again, "get", "combinedtasks", "-o", "name"))) == 9
	})
}

func kubectl(t *testing.T, a *harness.Appliance, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return mustSucceed(t, a.Kubectl(ctx, args...)).Stdout
}

func mustSucceed(t *testing.T, r harness.Result) harness.Result {
	t.Helper()
	if r.Code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	return r
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

// eventually asks again until condition holds, and fails after limit.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		if condition() {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}
