package aggregator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/taskctl-dev/taskctl/test/harness"
)

// testStored reads and writes the stored kinds through kube-apiserver.
func testStored(t *testing.T, c control) {
	s := c.run(t, c.storing(t))
	s.register(t)
	for _, kind := range []storedKind{
		{c, "ClusterTask", "clustertasks", ""},
		{c, "CustomTask", "customtasks", c.namespace(t)},
	} {
		for name, test := range map[string]func(*testing.T, storedKind){
			"are defaulted and labelled":            storedBasics,
			"are validated":                         storedValidation,
			"are applied":                           storedApply,
			"are created and replaced raw":          storedRaw,
			"are selected and printed":              storedLists,
			"have a status":                         storedStatus,
			"are deleted":                           storedDeletion,
			"are watched":                           storedWatch,
			"are not too large":                     storedSizes,
			"never depend on themselves":            storedCycles,
			"are kept from rings by 64 clients":     storedRings,
			"show what follows from dependsOn":      storedRelations,
			"say when they depend on themselves":    storedSlipped,
			"are explained":                         storedExplain,
			"are written only if they are the same": storedPreconditions,
		} {
			t.Run(kind.name+"s "+name, func(t *testing.T) {
				defer kind.try(t, "delete", kind.resource, "--all", "--timeout=20s")
				test(t, kind)
			})
		}
	}
	t.Run("CustomTasks live and die with their namespace", func(t *testing.T) { storedNamespaces(t, c) })
	t.Run("CustomTasks are garbage collected", func(t *testing.T) { storedOwners(t, c) })
	t.Run("stored kinds survive a restart", func(t *testing.T) { storedRestart(t, c, s) })
	t.Run("CustomTasks don't outlive a namespace that is deleted meanwhile", func(t *testing.T) { storedOrphans(t, c, s) })
}

func storedBasics(t *testing.T, k storedKind) {
	k.kubectl(t, "create", "-f", k.file(t, k.manifest("a", "priority: 0", "details: hello")))
	same(t, "priority", k.field(t, "a", ".spec.priority"), "0")
	same(t, "taskState", k.field(t, "a", ".spec.taskState"), "Pending")
	same(t, "labels", k.field(t, "a", `.metadata.labels.example\.example\.com/priority`), "0")
	same(t, "generation", k.field(t, "a", ".metadata.generation"), "1")
	k.kubectl(t, "label", k.resource, "a", "mine=yes")
	k.kubectl(t, "annotate", k.resource, "a", "mine=yes")
	same(t, "generation after a label", k.field(t, "a", ".metadata.generation"), "1")
	k.kubectl(t, "patch", k.resource, "a", "--type=json", `-p=[{"op":"replace","path":"/spec/priority","value":7}]`)
	same(t, "generation after a change", k.field(t, "a", ".metadata.generation"), "2")
	same(t, "label after a change", k.field(t, "a", `.metadata.labels.example\.example\.com/priority`), "7")
	k.kubectl(t, "patch", k.resource, "a", "--type=merge", `-p={"spec":{"taskState":"Finished"},"status":{"observedGeneration":99}}`)
	same(t, "status written through the resource", k.field(t, "a", ".status.observedGeneration"), "")
	same(t, "managed fields", fmt.Sprint(strings.Contains(k.kubectl(t, "get", k.resource, "a", "-o", "yaml", "--show-managed-fields"), "f:priority")), "true")

	k.kubectl(t, "create", "--dry-run=server", "-f", k.file(t, k.manifest("dry", "priority: 1")))
	k.refused(t, []string{"NotFound"}, "get", k.resource, "dry")
	generated := k.kubectl(t, "create", "-o", "name", "-f", k.file(t, strings.Replace(k.manifest("x", "priority: 1"), "name: x", "generateName: made-", 1)))
	if !strings.Contains(generated, "/made-") {
		t.Errorf("generated is %q", generated)
	}
	past := k.try(t, "create", "-f", k.file(t, strings.Replace(k.manifest("past", "priority: 1"), "2099", "1999", 1)))
	if past.Code != 0 || !strings.Contains(past.Stderr, "Warning: spec.deadline") {
		t.Errorf("a deadline in the past: %+v", past)
	}
}

func storedValidation(t *testing.T, k storedKind) {
	create := func(content string, parts ...string) {
		t.Helper()
		k.refused(t, parts, "create", "-f", k.file(t, content))
	}
	create(k.manifest("x", "priority: 11"), "spec.priority: Invalid value: 11", "must be between 0 and 10")
	create(k.manifest("x"), "spec.priority: Required value")
	create(k.manifest("x", "priority: 1", "taskState: Other"), "spec.taskState: Unsupported value")
	create(strings.Replace(k.manifest("x", "priority: 1"), `deadline: "2099-01-02T03:04:05Z"`, "details: x", 1), "spec.deadline: Required value")
	create(strings.Replace(k.manifest("x", "priority: 1"), "2099-01-02T03:04:05Z", "soon", 1), "soon")
	create(k.manifest("x", "priority: 1", "ttlSecondsAfterFinished: -1"), "spec.ttlSecondsAfterFinished")
	create(k.manifest("x", "priority: 1", "other: 1"), `unknown field "spec.other"`)
	create(k.manifest("X_y", "priority: 1"), "metadata.name", "RFC 1123")
	k.kubectl(t, "create", "--validate=warn", "-f", k.file(t, k.manifest("ok", "priority: 1", "other: 1")))
	k.refused(t, []string{"spec.priority"}, "patch", k.resource, "ok", "--type=merge", `-p={"spec":{"priority":11}}`)
	k.refused(t, []string{"spec.priority: Required value"}, "patch", k.resource, "ok", "--type=merge", `-p={"spec":{"priority":null}}`)
	k.refused(t, []string{"AlreadyExists"}, "create", "-f", k.file(t, k.manifest("ok", "priority: 1")))
	k.refused(t, []string{"NotFound"}, "replace", "-f", k.file(t, k.manifest("nope", "priority: 1")))
}

func storedApply(t *testing.T, k storedKind) {
	first := k.file(t, k.manifest("a", "priority: 1", "details: one"))
	second := k.file(t, k.manifest("a", "priority: 2"))
	k.kubectl(t, "apply", "-f", first)
	if r := k.try(t, "diff", "-f", second); r.Code != 1 || !strings.Contains(r.Stdout, "priority: 2") {
		t.Errorf("diff: %+v", r)
	}
	k.kubectl(t, "apply", "-f", second)
	same(t, "priority", k.field(t, "a", ".spec.priority"), "2")
	same(t, "details that are no longer applied", k.field(t, "a", ".spec.details"), "")

	k.kubectl(t, "apply", "--server-side", "--field-manager=one", "-f", k.file(t, k.manifest("b", "priority: 1", "details: one")))
	k.refused(t, []string{"conflict", ".spec.priority"}, "apply", "--server-side", "--field-manager=two", "-f", k.file(t, k.manifest("b", "priority: 5")))
	k.kubectl(t, "apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", k.file(t, k.manifest("b", "priority: 5")))
	same(t, "priority", k.field(t, "b", ".spec.priority"), "5")
	same(t, "details of the other manager", k.field(t, "b", ".spec.details"), "one")
	k.kubectl(t, "apply", "--server-side", "--field-manager=one", "--force-conflicts", "-f", k.file(t, k.manifest("b", "priority: 5")))
	same(t, "details that nobody applies", k.field(t, "b", ".spec.details"), "")
	k.kubectl(t, "replace", "-f", k.file(t, k.manifest("b", "priority: 9")))
	same(t, "priority after replace", k.field(t, "b", ".spec.priority"), "9")
}

func storedRaw(t *testing.T, k storedKind) {
	asJSON := fmt.Sprintf(`{"apiVersion":"search.task.example.example.com/v1","kind":%q,"metadata":{"name":%q},"spec":{"priority":1,"deadline":"2099-01-02T03:04:05Z"}}`, k.name, "json")
	raw := func(verb, path, content string) harness.Result {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return k.Kubectl(ctx, verb, "--raw", path, "-f", k.file(t, content))
	}
	for what, r := range map[string]harness.Result{
		"JSON on the collection":    raw("create", k.path(), asJSON),
		"YAML on the collection":    raw("create", k.path(), k.manifest("yaml", "priority: 1")),
		"JSON on the name":          raw("create", k.path()+"/json2", strings.Replace(asJSON, `"json"`, `"json2"`, 1)),
		"YAML on the name":          raw("create", k.path()+"/yaml2", k.manifest("yaml2", "priority: 1")),
		"the name in the path only": raw("create", k.path()+"/yaml3", strings.Replace(k.manifest("x", "priority: 1"), "metadata:\n  name: x\n", "", 1)),
	} {
		if r.Code != 0 {
			t.Errorf("%s: %+v", what, r)
		}
	}
	same(t, "created", k.kubectl(t, "get", k.resource, "-o", "jsonpath={.items[*].metadata.name}"), "json json2 yaml yaml2 yaml3")
	if r := raw("create", k.path()+"/other", k.manifest("yaml9", "priority: 1")); r.Code == 0 || !strings.Contains(r.Stderr, "does not match the name on the URL") {
		t.Errorf("two names: %+v", r)
	}
	if r := raw("create", k.path()+"/bad", "{"); r.Code == 0 || !strings.Contains(r.Stderr, "neither JSON nor YAML") {
		t.Errorf("no object: %+v", r)
	}
	if r := raw("create", k.path()+"/json", asJSON); r.Code == 0 || !strings.Contains(r.Stderr, "AlreadyExists") {
		t.Errorf("an existing one: %+v", r)
	}
	for what, content := range map[string]string{"JSON": strings.Replace(asJSON, `"priority":1`, `"priority":8`, 1), "YAML": k.manifest("json", "priority: 9")} {
		if r := raw("replace", k.path()+"/json", content); r.Code != 0 {
			t.Errorf("replace by %s: %+v", what, r)
		}
	}
}

func storedLists(t *testing.T, k storedKind) {
	for i := range 5 {
		k.kubectl(t, "create", "-f", k.file(t, k.manifest(fmt.Sprint("t", i), fmt.Sprint("priority: ", i%3))))
	}
	names := func(args ...string) string {
		return k.kubectl(t, append([]string{"get", k.resource, "-o", "jsonpath={.items[*].metadata.name}"}, args...)...)
	}
	same(t, "by field", names("--field-selector", "spec.priority=1"), "t1 t4")
	same(t, "by state", names("--field-selector", "spec.taskState!=Pending"), "")
	same(t, "by label", names("--selector", "example.example.com/priority in (0,2)"), "t0 t2 t3")
	same(t, "in chunks", names("--chunk-size=2"), "t0 t1 t2 t3 t4")
	k.refused(t, []string{"BadRequest", `"spec.details"`}, "get", k.resource, "--field-selector", "spec.details=x")
	out := k.kubectl(t, "get", k.resource)
	same(t, "columns", strings.Join(strings.Fields(strings.SplitN(out, "\n", 2)[0]), " "), "NAME PRIORITY DEADLINE TASKSTATE AGE")
	if wide := k.kubectl(t, "get", k.resource, "-o", "wide"); !strings.Contains(wide, "DETAILS") {
		t.Errorf("wide: %s", wide)
	}
}

func storedStatus(t *testing.T, k storedKind) {
	k.kubectl(t, "create", "-f", k.file(t, k.manifest("a", "priority: 1")))
	k.kubectl(t, "patch", k.resource, "a", "--subresource=status", "--type=merge", `-p={"spec":{"priority":5},"status":{"observedGeneration":1}}`)
	same(t, "status", k.field(t, "a", ".status.observedGeneration"), "1")
	same(t, "spec written through the status", k.field(t, "a", ".spec.priority"), "1")
	same(t, "generation", k.field(t, "a", ".metadata.generation"), "1")
	k.kubectl(t, "wait", "--for=jsonpath={.status.observedGeneration}=1", k.resource+"/a", "--timeout=10s")
}

func storedDeletion(t *testing.T, k storedKind) {
	k.kubectl(t, "create", "-f", k.file(t, k.manifest("a", "priority: 1")))
	k.kubectl(t, "patch", k.resource, "a", "--type=merge", `-p={"metadata":{"finalizers":["example.com/held"]}}`)
	k.kubectl(t, "delete", k.resource, "a", "--wait=false")
	if k.field(t, "a", ".metadata.deletionTimestamp") == "" {
		t.Error("what is held by a finalizer has no deletionTimestamp")
	}
	k.kubectl(t, "patch", k.resource, "a", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
	k.kubectl(t, "wait", "--for=delete", k.resource+"/a", "--timeout=10s")
	for i := range 3 {
		k.kubectl(t, "create", "-f", k.file(t, k.manifest(fmt.Sprint("t", i), "priority: 1")))
	}
	r := k.Kubectl(t.Context(), "delete", "--raw", k.path())
	if r.Code != 0 {
		t.Errorf("delete the collection: %+v", r)
	}
	same(t, "left", k.kubectl(t, "get", k.resource, "-o", "name"), "")
}

// storedWatch takes the events from kube-apiserver itself; what kubectl makes of
// them is the end-to-end tests' matter.
func storedWatch(t *testing.T, k storedKind) {
	config := k.REST()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+k.path()+"?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", nil)
	must(t, err)
	k.kubectl(t, "create", "-f", k.file(t, k.manifest("a", "priority: 1")))
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	events := json.NewDecoder(response.Body)
	// Bookmarks between the changes come when the watch cache likes to.
	next := func(want string) {
		t.Helper()
		got := "BOOKMARK"
		for got == "BOOKMARK" {
			var event struct {
				Type   string
				Object struct {
					Kind     string
					Metadata struct {
						Name        string
						Annotations map[string]string
					}
				}
			}
			must(t, events.Decode(&event))
			got = event.Type
			metadata := event.Object.Metadata
			if what := metadata.Name + metadata.Annotations["k8s.io/initial-events-end"]; what != "" {
				got += " " + event.Object.Kind + " " + what
			}
		}
		same(t, "event", got, want)
	}
	next("ADDED " + k.name + " a")
	next("BOOKMARK " + k.name + " true")
	k.kubectl(t, "patch", k.resource, "a", "--type=merge", `-p={"spec":{"priority":2}}`)
	next("MODIFIED " + k.name + " a")
	k.kubectl(t, "delete", k.resource, "a")
	next("DELETED " + k.name + " a")
}

func storedExplain(t *testing.T, k storedKind) {
	if out := k.kubectl(t, "explain", k.resource+".spec"); !strings.Contains(out, "priority\t<integer> -required-") {
		t.Errorf("explain: %s", out)
	}
	if out := k.kubectl(t, "explain", "--output=plaintext-openapiv2", k.resource+".spec"); !strings.Contains(out, "priority") {
		t.Errorf("explain: %s", out)
	}
}

func storedPreconditions(t *testing.T, k storedKind) {
	k.kubectl(t, "create", "-f", k.file(t, k.manifest("a", "priority: 1")))
	stale := strings.Replace(k.manifest("a", "priority: 2"), "name: a", "name: a\n  resourceVersion: \"1\"", 1)
	k.refused(t, []string{"Conflict"}, "replace", "-f", k.file(t, stale))
	other := k.file(t, `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"other"}}`)
	if r := k.Kubectl(t.Context(), "delete", "--raw", k.path()+"/a", "-f", other); r.Code == 0 || !strings.Contains(r.Stderr, "Conflict") {
		t.Errorf("delete with another UID: %+v", r)
	}
}
