package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/test/harness"
)

// TestCombinedTasks reads combinedtasks through kube-apiserver, as users do.
func TestCombinedTasks(t *testing.T) {
	a := harness.Start(t)
	for name, test := range map[string]func(*testing.T, *harness.Appliance, string){
		"are discovered":                         combinedAreDiscovered,
		"are explained":                          combinedAreExplained,
		"are printed as tables":                  combinedTables,
		"are selected":                           combinedAreSelected,
		"are listed in chunks":                   combinedChunks,
		"can only be read":                       combinedReadOnly,
		"are watched":                            combinedWatch,
		"are waited for":                         combinedWait,
		"are for those who may read both halves": combinedRights,
		"fill the caches of controllers":         combinedCache,
	} {
		t.Run(name, func(t *testing.T) {
			namespace := "combined-" + strings.Trim(strings.Map(lowerOrDash, name), "-")
			kubectl(t, a, "create", "namespace", namespace)
			test(t, a, namespace)
		})
	}
}

func lowerOrDash(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return '-'
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// createTasks applies Tasks with these priorities, named t0, t1, ….
func createTasks(t *testing.T, a *harness.Appliance, namespace string, priorities ...int) {
	t.Helper()
	var manifest strings.Builder
	for i, priority := range priorities {
		fmt.Fprintf(&manifest, "---\napiVersion: example.example.com/v1\nkind: Task\nmetadata: {name: t%d}\nspec: {priority: %d, deadline: \"2099-01-02T03:04:05Z\"}\n", i, priority)
	}
	file := filepath.Join(t.TempDir(), "tasks.yaml")
	write(t, file, manifest.String())
	kubectl(t, a, "apply", "-n", namespace, "-f", file)
	eventually(t, "every task is announced", func() bool {
		out := kubectl(t, a, "get", "combinedtasks", "-n", namespace, "-o", `jsonpath={range .items[*]}{.status.events[*].reason}{"\n"}{end}`)
		return strings.Count(out, "TaskCreated") == len(priorities)
	})
}

// createEvent makes an Event about a Task by hand.
func createEvent(t *testing.T, a *harness.Appliance, namespace, task, name string) {
	t.Helper()
	uid := kubectl(t, a, "get", "tasks", task, "-n", namespace, "-o", "jsonpath={.metadata.uid}")
	file := filepath.Join(t.TempDir(), "event.yaml")
	write(t, file, fmt.Sprintf(`apiVersion: v1
kind: Event
metadata: {name: %s, labels: {example.example.com/task-uid: %s}}
involvedObject: {apiVersion: example.example.com/v1, kind: Task, name: %s, namespace: %s, uid: %s}
reason: ByHand
message: made by hand
type: Normal
`, name, uid, task, namespace, uid))
	kubectl(t, a, "create", "-n", namespace, "-f", file)
}

func combinedAreDiscovered(t *testing.T, a *harness.Appliance, _ string) {
	out := kubectl(t, a, "api-resources", "--api-group=search.task.example.example.com", "-o", "wide", "--no-headers")
	fields := strings.Fields(firstLine(out, "combinedtasks"))
	if got := strings.Join(fields, " "); got != "combinedtasks ctk search.task.example.example.com/v1 true CombinedTask get,list,watch" {
		t.Errorf("got %q", got)
	}
	contains(t, kubectl(t, a, "api-versions"), "search.task.example.example.com/v1")
	contains(t, kubectl(t, a, "get", "apiservices", "v1.search.task.example.example.com"), "True")
	if all := kubectl(t, a, "get", "all", "-A", "-o", "name"); strings.Contains(all, "combinedtask") {
		t.Errorf("combinedtasks are in the category all:\n%s", all)
	}
}

func firstLine(text, prefix string) string {
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}

func combinedAreExplained(t *testing.T, a *harness.Appliance, _ string) {
	contains(t, kubectl(t, a, "explain", "combinedtasks.status"), "eventsCount", "eventsTruncated", "taskResourceVersion", "conditions")
	contains(t, kubectl(t, a, "explain", "ctk.status.events.involvedObject"), "fieldPath")
	contains(t, kubectl(t, a, "explain", "--output=plaintext-openapiv2", "combinedtasks.spec"), "priority", "deadline")
	var whole struct {
		Definitions map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(kubectl(t, a, "get", "--raw", "/openapi/v2")), &whole); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"com.example.example.task.search.v1.CombinedTask", "com.example.example.v1.Task", "io.k8s.api.core.v1.Event"} {
		if whole.Definitions[name] == nil {
			t.Errorf("the OpenAPI document of the whole cluster has no %s", name)
		}
	}
}

func combinedTables(t *testing.T, a *harness.Appliance, namespace string) {
	createTasks(t, a, namespace, 3)
	header := func(args ...string) string {
		out := kubectl(t, a, append([]string{"get", "-n", namespace}, args...)...)
		return strings.Join(strings.Fields(strings.SplitN(out, "\n", 2)[0]), " ")
	}
	if got := header("combinedtasks"); got != "NAME PRIORITY DEADLINE TASKSTATE EVENTS LAST REASON AGE" {
		t.Errorf("columns are %s", got)
	}
	if got := header("combinedtasks", "-o", "wide"); !strings.HasPrefix(got, "NAME PRIORITY DEADLINE TASKSTATE EVENTS LAST REASON AGE ") {
		t.Errorf("wide columns are %s", got)
	}
	// Task's columns are all there, in the same order and with the same cells.
	one := strings.Fields(kubectl(t, a, "get", "-n", namespace, "combinedtasks", "t0", "--no-headers"))
	task := strings.Fields(kubectl(t, a, "get", "-n", namespace, "tasks", "t0", "--no-headers"))
	if strings.Join(one[:4], " ") != strings.Join(task[:4], " ") || one[5] != "TaskCreated" {
		t.Errorf("the row is %q, the Task's %q", one, task)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(kubectl(t, a, "get", "-n", namespace, "combinedtasks", "t0", "-o", "json")), &object); err != nil || object["kind"] != "CombinedTask" {
		t.Errorf("one object is %v, %v", object, err)
	}
	empty := a.Kubectl(t.Context(), "get", "combinedtasks", "-n", "no-such-namespace")
	contains(t, empty.Stderr, "No resources found")
}

func combinedAreSelected(t *testing.T, a *harness.Appliance, namespace string) {
	createTasks(t, a, namespace, 3, 4, 3)
	for _, test := range []struct{ flag, selector, want string }{
		{"--field-selector", "spec.priority=3", "t0 t2"},
		{"--field-selector", "spec.priority!=3", "t1"},
		{"--field-selector", "spec.taskState=Pending,spec.priority=4", "t1"},
		{"--field-selector", "metadata.name=t1", "t1"},
		{"--selector", "example.example.com/priority=3", "t0 t2"},
		{"--selector", "example.example.com/priority in (4,5)", "t1"},
		{"--selector", "example.example.com/priority notin (4)", "t0 t2"},
		{"--selector", "!example.example.com/priority", ""},
		{"--selector", "example.example.com/priority>3", "t1"},
	} {
		out := kubectl(t, a, "get", "combinedtasks", "-n", namespace, test.flag, test.selector, "-o", "jsonpath={.items[*].metadata.name}")
		if out != test.want {
			t.Errorf("%s %s: got %q, want %q", test.flag, test.selector, out, test.want)
		}
	}
	unknown := a.Kubectl(t.Context(), "get", "combinedtasks", "-n", namespace, "--field-selector", "spec.details=x")
	if unknown.Code == 0 {
		t.Error("an unknown field can be selected")
	}
	contains(t, unknown.Stderr, "BadRequest", `"spec.details"`)
}

func combinedChunks(t *testing.T, a *harness.Appliance, namespace string) {
	createTasks(t, a, namespace, 0, 1, 2, 3, 4)
	out := kubectl(t, a, "get", "combinedtasks", "-n", namespace, "--chunk-size=2", "-o", "jsonpath={.items[*].metadata.name}")
	if out != "t0 t1 t2 t3 t4" {
		t.Errorf("got %q", out)
	}
	raw := kubectl(t, a, "get", "--raw", "/apis/search.task.example.example.com/v1/namespaces/"+namespace+"/combinedtasks?limit=2")
	contains(t, raw, `"remainingItemCount":3`, `"kind":"CombinedTaskList"`)
}

func combinedReadOnly(t *testing.T, a *harness.Appliance, namespace string) {
	createTasks(t, a, namespace, 3)
	for _, args := range [][]string{
		{"delete", "combinedtasks", "t0"}, {"label", "combinedtasks", "t0", "a=b"},
		{"patch", "combinedtasks", "t0", "--type=merge", "-p", `{"spec":{"priority":1}}`},
	} {
		if r := a.Kubectl(t.Context(), append(args, "-n", namespace)...); r.Code == 0 || !strings.Contains(r.Stderr, "MethodNotAllowed") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	missing := a.Kubectl(t.Context(), "get", "combinedtasks", "nope", "-n", namespace)
	contains(t, missing.Stderr, `Error from server (NotFound): combinedtasks.search.task.example.example.com "nope" not found`)
}

// lines runs kubectl until the test ends and returns what it prints.
func lines(t *testing.T, a *harness.Appliance, args ...string) <-chan string {
	t.Helper()
	command := exec.Command(harness.Binary(t), append([]string{"kubectl"}, args...)...)
	command.Env = append(os.Environ(), "TASKCTL_DATA_DIR="+a.DataDir, "KUBECONFIG="+a.Kubeconfig)
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	printed := make(chan string, 1000)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			printed <- strings.Join(strings.Fields(scanner.Text()), " ")
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-finished
		_ = command.Wait()
	})
	return printed
}

// expectLine waits for a line with all these parts and tells how long it took.
func expectLine(t *testing.T, printed <-chan string, parts ...string) time.Duration {
	t.Helper()
	start := time.Now()
	var seen []string
	for {
		select {
		case line := <-printed:
			seen = append(seen, line)
			all := true
			for _, part := range parts {
				all = all && strings.Contains(line, part)
			}
			if all {
				return time.Since(start)
			}
		case <-time.After(limit):
			t.Fatalf("no line with %q within %s:\n%s", parts, limit, strings.Join(seen, "\n"))
		}
	}
}

func combinedWatch(t *testing.T, a *harness.Appliance, namespace string) {
	createTasks(t, a, namespace, 3)
	all := lines(t, a, "get", "combinedtasks", "-n", namespace, "-w")
	pending := lines(t, a, "get", "combinedtasks", "-n", namespace, "-w", "--output-watch-events", "--field-selector", "spec.taskState=Pending")
	expectLine(t, all, "NAME PRIORITY")
	expectLine(t, all, "t0 3")
	expectLine(t, pending, "ADDED t0")

	createEvent(t, a, namespace, "t0", "by-hand")
	// kubectl and its start count in, so this is the limit of what is promised.
	if took := expectLine(t, all, "t0", "2 ByHand"); took > time.Second {
		t.Errorf("the Event was printed after %s", took)
	}
	expectLine(t, pending, "MODIFIED t0", "ByHand")

	kubectl(t, a, "patch", "tasks", "t0", "-n", namespace, "--type=merge", "-p", `{"spec":{"taskState":"Finished"}}`)
	expectLine(t, all, "t0", "Finished")
	expectLine(t, pending, "DELETED t0")
	kubectl(t, a, "patch", "tasks", "t0", "-n", namespace, "--type=merge", "-p", `{"spec":{"taskState":"Pending"}}`)
	expectLine(t, pending, "ADDED t0")
	kubectl(t, a, "delete", "tasks", "t0", "-n", namespace)
	expectLine(t, pending, "DELETED t0")
}

func combinedWait(t *testing.T, a *harness.Appliance, namespace string) {
	createTasks(t, a, namespace, 3)
	kubectl(t, a, "wait", "--for=jsonpath={.status.eventsCount}=1", "combinedtasks/t0", "-n", namespace, "--timeout=20s")
	kubectl(t, a, "wait", "--for=condition=Ready", "combinedtasks/t0", "-n", namespace, "--timeout=20s")
	kubectl(t, a, "delete", "tasks", "t0", "-n", namespace)
	kubectl(t, a, "wait", "--for=delete", "combinedtasks/t0", "-n", namespace, "--timeout=20s")
}

func combinedRights(t *testing.T, a *harness.Appliance, namespace string) {
	createTasks(t, a, namespace, 3)
	kubectl(t, a, "create", "rolebinding", "viewer", "-n", namespace, "--clusterrole=view", "--user=viewer")
	kubectl(t, a, "create", "role", "half", "-n", namespace, "--verb=get,list,watch", "--resource=combinedtasks.search.task.example.example.com,tasks.example.example.com")
	kubectl(t, a, "create", "rolebinding", "half", "-n", namespace, "--role=half", "--user=half")
	eventually(t, "a viewer may read", func() bool {
		return a.Kubectl(t.Context(), "get", "combinedtasks", "t0", "-n", namespace, "--as=viewer").Code == 0
	})
	for _, args := range [][]string{{"get", "combinedtasks", "-n", namespace, "--as=half"}, {"get", "combinedtasks", "t0", "-n", namespace, "--as=half"}} {
		r := a.Kubectl(t.Context(), args...)
		if r.Code == 0 {
			t.Errorf("%q: %+v", args, r)
		}
		contains(t, r.Stderr, "Forbidden", `cannot list resource "events"`)
	}
	for _, args := range [][]string{{"get", "combinedtasks", "-A", "--as=viewer"}, {"get", "combinedtasks", "-n", "default", "--as=viewer"}, {"get", "combinedtasks", "-n", namespace, "--as=nobody"}} {
		if r := a.Kubectl(t.Context(), args...); r.Code == 0 || !strings.Contains(r.Stderr, "Forbidden") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// startCache fills a controller's cache with whatever of the aggregated kinds is
// asked for, until the test ends.
func startCache(t *testing.T, a *harness.Appliance, namespace string) cache.Cache {
	t.Helper()
	log.SetLogger(klog.Background())
	scheme := runtime.NewScheme()
	if err := searchv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(a.REST())
	filled, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- filled.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return filled
}

func combinedCache(t *testing.T, a *harness.Appliance, namespace string) {
	createTasks(t, a, namespace, 3, 4)
	filled := startCache(t, a, namespace)
	knows := func(want string) func() bool {
		return func() bool {
			var list searchv1.CombinedTaskList
			if err := filled.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			var known []string
			for _, item := range list.Items {
				known = append(known, fmt.Sprintf("%s+%d", item.Name, item.Status.EventsCount))
			}
			slices.Sort(known)
			return strings.Join(known, " ") == want
		}
	}
	eventually(t, "the cache is filled", knows("t0+1 t1+1"))
	createEvent(t, a, namespace, "t1", "by-hand")
	eventually(t, "the cache follows", knows("t0+1 t1+2"))
	kubectl(t, a, "delete", "tasks", "t0", "-n", namespace)
	eventually(t, "the cache forgets", knows("t1+2"))
}
