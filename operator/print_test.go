package operator_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// printsEvents looks at Tasks and Events through kubectl, as users do.
func printsEvents(t *testing.T, e *environment) {
	e.run(t, nil, nil)
	task := e.create(t, e.namespace(t), func(task *taskv1.Task) { task.Name, task.GenerateName = "printed", "" })
	e.settled(t, task)
	kubectl := func(args ...string) string {
		t.Helper()
		result := e.appliance.Kubectl(t.Context(), append(args, "-n", task.Namespace)...)
		if result.Code != 0 {
			t.Fatalf("kubectl %v: %s", args, result.Stderr)
		}
		return result.Stdout
	}
	contains := func(output string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(output, part) {
				t.Errorf("%q is not in\n%s", part, output)
			}
		}
	}

	events := kubectl("get", "events", "--field-selector", "involvedObject.kind=Task,involvedObject.name=printed")
	contains(events, "Normal", "TaskCreated", "task/printed")
	if strings.Contains(events, "<unknown>") {
		t.Errorf("a time is missing:\n%s", events)
	}
	contains(kubectl("get", "events", "-o", "wide"), "taskctl-operator", "1")
	contains(kubectl("events", "--for", "task/printed"), "TaskCreated")
	described := kubectl("describe", "task", "printed")
	contains(described, "TaskCreated", "Observed Generation")
	contains(kubectl("get", "tk"), "PRIORITY", "DEADLINE", "TASKSTATE", "AGE", "printed", "Pending")
	kubectl("wait", "--for=condition=Ready", "task/printed", "--timeout=10s")
}

func rawMergePatch(patch string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(patch))
}

func dryRun() client.PatchOption { return client.DryRunAll }

func inNamespace(namespace string) client.ListOption { return client.InNamespace(namespace) }

func fieldSelector(t *testing.T, text string) client.ListOption {
	t.Helper()
	selector, err := fields.ParseSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return client.MatchingFieldsSelector{Selector: selector}
}
