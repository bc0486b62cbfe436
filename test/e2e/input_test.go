package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/test/harness"
)

// TestInput shows that what is wrong is refused with its name, and that a
// namespace full of tasks goes.
func TestInput(t *testing.T) {
	a := harness.Start(t)
	for name, c := range map[string]struct{ spec, field string }{
		"priority too high":  {`{priority: 11, deadline: "2099-01-01T00:00:00Z"}`, "spec.priority"},
		"priority negative":  {`{priority: -1, deadline: "2099-01-01T00:00:00Z"}`, "spec.priority"},
		"no priority":        {`{deadline: "2099-01-01T00:00:00Z"}`, "spec.priority"},
		"no deadline":        {`{priority: 1}`, "spec.deadline"},
		"deadline no date":   {`{priority: 1, deadline: soon}`, "spec.deadline"},
		"deadline too early": {`{priority: 1, deadline: "1969-12-31T23:59:59Z"}`, "spec.deadline"},
		"unknown state":      {`{priority: 1, deadline: "2099-01-01T00:00:00Z", taskState: Sleeping}`, "spec.taskState"},
		"negative ttl":       {`{priority: 1, deadline: "2099-01-01T00:00:00Z", ttlSecondsAfterFinished: -1}`, "spec.ttlSecondsAfterFinished"},
	} {
		t.Run(name, func(t *testing.T) {
			file := manifest(t, task("bad", c.spec))
			r := a.Kubectl(t.Context(), "create", "-f", file)
			if r.Code == 0 || !strings.Contains(r.Stderr, c.field) {
				t.Errorf("exit code %d, want a refusal that names %s:\n%s%s", r.Code, c.field, r.Stdout, r.Stderr)
			}
		})
	}

	t.Run("priority 0 is a priority", func(t *testing.T) {
		kubectl(t, a, "create", "-f", manifest(t, task("zero", `{priority: 0, deadline: "2099-01-01T00:00:00Z"}`)))
		if got := kubectl(t, a, "get", "tasks", "-l", "example.example.com/priority=0", "-o", "jsonpath={.items[*].spec.priority}"); got != "0" {
			t.Errorf("priority is %q, want 0", got)
		}
	})

	t.Run("a namespace with a hundred tasks goes within ten seconds", func(t *testing.T) {
		var tasks strings.Builder
		for i := range 100 {
			tasks.WriteString("---\n" + task(fmt.Sprintf("task-%d", i), `{priority: 5, deadline: "2099-01-01T00:00:00Z"}`))
		}
		kubectl(t, a, "create", "namespace", "crowd")
		kubectl(t, a, "create", "-n", "crowd", "-f", manifest(t, tasks.String()))
		eventually(t, "all tasks are observed", func() bool {
			return len(strings.Fields(kubectl(t, a, "get", "tasks", "-n", "crowd", "-o", "jsonpath={.items[*].status.observedGeneration}"))) == 100
		})
		begin := time.Now()
		kubectl(t, a, "delete", "namespace", "crowd", "--timeout=10s")
		t.Logf("gone after %s", time.Since(begin).Round(100*time.Millisecond))
	})
}

func task(name, spec string) string {
	return fmt.Sprintf("apiVersion: example.example.com/v1\nkind: Task\nmetadata: {name: %s}\nspec: %s\n", name, spec)
}

func manifest(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
