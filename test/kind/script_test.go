package kind

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taskctl-dev/taskctl/test/dbserver"
)

// kubectlScript is what the README shows.
func kubectlScript(u *user) {
	t := u.t
	contains(t, u.must("demo"), "task-sample-1", "task-sample-10", "TaskCreated")
	if got := u.kubectl("get", "tasks", "--selector", "example.example.com/priority=3", "--field-selector", "spec.priority=3", "-o", "name"); got != "task.example.example.com/task-sample-3\n" {
		t.Errorf("selected: %q", got)
	}
	u.kubectl("patch", "tasks", "task-sample-2", "--type=json", `-p=[{"op":"replace","path":"/spec/taskState","value":"Finished"}]`)
	u.kubectl("wait", "--for=jsonpath={.status.finishedAt}", "tasks/task-sample-2", "--timeout=60s")
	eventually(t, "TaskFinished is stored", func() bool {
		return strings.Contains(u.kubectl("get", "combinedtasks", "task-sample-2", "-o", "jsonpath={.status.events[*].reason}"), "TaskFinished")
	})
	contains(t, u.kubectl("get", "combinedtasks", "-A"), "NAMESPACE", "EVENTS", "task-sample-10")
	u.kubectl("delete", "task", "task-sample-9")
	if got := u.kubectl("get", "combinedtasks", "-o", "name"); strings.Contains(got, "task-sample-9") {
		t.Errorf("a deleted task is still there:\n%s", got)
	}
	// The webhook warns of it, and refuses what is not valid at all.
	file := filepath.Join(t.TempDir(), "task.yaml")
	task := "apiVersion: example.example.com/v1\nkind: Task\nmetadata: {name: %s}\nspec: {priority: %s, deadline: \"1970-01-01T00:00:00Z\"}\n"
	if err := os.WriteFile(file, fmt.Appendf(nil, task, "late", "0"), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, u.run("kubectl", "apply", "-f", file).Stderr, "spec.deadline")
	contains(t, u.kubectl("get", "task", "late", "-o", "jsonpath={.metadata.labels}"), `"example.example.com/priority":"0"`)
}

// aggregated asks what tells whether the aggregation layer reaches us.
func aggregated(u *user) {
	t := u.t
	contains(t, u.kubectl("get", "apiservices", "v1.search.task.example.example.com"), "True")
	contains(t, u.kubectl("api-resources", "--api-group=search.task.example.example.com", "--no-headers"), "combinedtasks")
	contains(t, u.kubectl("explain", "combinedtasks.status"), "events")
	// Somebody without rights is refused by the aggregated API, not by chance.
	refused := u.run("kubectl", "get", "combinedtasks", "--as", "jane")
	if refused.Code == 0 || !strings.Contains(refused.Stderr, "Forbidden") {
		t.Errorf("jane: code %d, %s", refused.Code, refused.Stderr)
	}
	// It listens for the node, and on no other address of this machine.
	contains(t, u.kubectl("get", "endpointslices", "-n", "taskctl-system", "taskctl-aggregator"), "IPv4")
	address := u.kubectl("get", "endpointslices", "-n", "taskctl-system", "taskctl-aggregator", "-o", "jsonpath={.endpoints[0].addresses[0]}")
	if strings.HasPrefix(address, "127.") {
		t.Errorf("the endpoint is %s", address)
	}
}

const appImage = "taskctl.example.com/waits:v1"

const deploymentYAML = `apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: 3
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: app, image: "` + appImage + `", imagePullPolicy: Never}
`

// deployment loads the tests' image, runs three replicas, and updates, scales and deletes them.
func deployment(u *user) {
	t := u.t
	u.must("kind", "load", appImage)
	u.apply(deploymentYAML)
	u.kubectl("rollout", "status", "deployment/app", "--timeout=4m")
	first := u.kubectl("get", "pods", "-l", "app=app", "-o", "name")
	if len(lines(first)) != 3 {
		t.Errorf("Pods: %s", first)
	}
	u.kubectl("set", "env", "deployment/app", "CHANGED=yes")
	u.kubectl("rollout", "status", "deployment/app", "--timeout=4m")
	for _, pod := range lines(u.kubectl("get", "pods", "-l", "app=app", "--field-selector=status.phase=Running", "-o", "jsonpath={range .items[?(@.spec.containers[0].env)]}{.metadata.name}{\"\\n\"}{end}")) {
		if strings.Contains(first, pod) {
			t.Errorf("%s was not replaced", pod)
		}
	}
	u.kubectl("scale", "deployment/app", "--replicas=1")
	u.kubectl("wait", "--for=jsonpath={.status.replicas}=1", "deployment/app", "--timeout=4m")
	u.kubectl("delete", "deployment", "app")
	u.kubectl("wait", "--for=delete", "pod", "-l", "app=app", "--timeout=4m")
}

// TestTwoSideBySide runs two appliances at the same time, each on another
// database.
func TestTwoSideBySide(t *testing.T) {
	specs := map[string]string{"SQLite": "sqlite", "PostgreSQL": dbserver.Postgres(t)}
	leavesNothing(t)
	testImage(t, appImage)
	users := map[string]*user{}
	for name, spec := range specs {
		u := newUser(t)
		// A password stands in no argument list.
		u.env = append(u.env, "TASKCTL_STORAGE="+spec)
		u.must("up", "-d")
		users[name] = u
	}
	for name, u := range users {
		t.Run(name, func(t *testing.T) {
			u := u.in(t)
			deployment(u)
			contains(t, u.must("demo"), "task-sample-10", "TaskCreated")
			u.kubectl("create", "configmap", "mine", "--from-literal=of="+name)
		})
	}
	// What one does must not matter to the other.
	users["SQLite"].must("down")
	contains(t, users["PostgreSQL"].kubectl("get", "combinedtasks"), "task-sample-1")
	users["PostgreSQL"].must("down")
	for name, u := range users {
		u.must("up", "-d")
		contains(t, u.kubectl("get", "configmap", "mine", "-o", "jsonpath={.data.of}"), name)
		u.must("down", "--purge")
	}
}
