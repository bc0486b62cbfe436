package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/test/harness"
)

const searchAPI = "/apis/search.task.example.example.com/v1/"

// TestStoredTasks uses clustertasks and customtasks as people do: the real
// binary, its own store, kubectl.
func TestStoredTasks(t *testing.T) {
	a := harness.Start(t)
	for name, test := range map[string]func(*testing.T, *harness.Appliance, string){
		"are discovered":                 storedAreDiscovered,
		"are written raw and kept":       storedRaw,
		"are for viewers and editors":    storedRights,
		"go with their namespace":        storedNamespace,
		"leave quotas alone":             storedQuota,
		"fill the caches of controllers": storedCache,
		"depend on one another":          storedDependencies,
		"are found by words":             storedSearch,
		"are applied and watched":        storedApplied,
	} {
		t.Run(name, func(t *testing.T) {
			namespace := "stored-" + strings.Trim(strings.Map(lowerOrDash, name), "-")
			kubectl(t, a, "create", "namespace", namespace)
			test(t, a, namespace)
		})
	}
}

// storedManifest is a ClusterTask or CustomTask with priority 3 and more lines
// of its spec.
func storedManifest(kind, name string, fields ...string) string {
	text := fmt.Sprintf("---\napiVersion: search.task.example.example.com/v1\nkind: %s\nmetadata: {name: %s}\nspec:\n  priority: 3\n  deadline: \"2099-01-02T03:04:05Z\"\n", kind, name)
	for _, field := range fields {
		text += "  " + field + "\n"
	}
	return text
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	write(t, path, content)
	return path
}

func storedAreDiscovered(t *testing.T, a *harness.Appliance, _ string) {
	out := kubectl(t, a, "api-resources", "--api-group=search.task.example.example.com", "-o", "wide", "--no-headers")
	for name, want := range map[string]string{
		"clustertasks": "clustertasks cltk search.task.example.example.com/v1 false ClusterTask create,delete,deletecollection,get,list,patch,update,watch",
		"customtasks":  "customtasks cutk search.task.example.example.com/v1 true CustomTask create,delete,deletecollection,get,list,patch,update,watch",
	} {
		if got := strings.Join(strings.Fields(firstLine(out, name)), " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// storedRaw writes by path and reads the key from the appliance's store.
func storedRaw(t *testing.T, a *harness.Appliance, namespace string) {
	cluster := file(t, storedManifest("ClusterTask", "foo", "details: first"))
	kubectl(t, a, "create", "--raw", searchAPI+"clustertasks/foo", "-f", cluster)
	kubectl(t, a, "replace", "--raw", searchAPI+"clustertasks/foo", "-f", file(t, storedManifest("ClusterTask", "foo", "details: second")))
	contains(t, kubectl(t, a, "get", "cltk", "foo", "-o", "yaml"), "details: second", "taskState: Pending", "generation: 2")
	kubectl(t, a, "create", "--raw", searchAPI+"namespaces/"+namespace+"/customtasks", "-f", file(t, storedManifest("CustomTask", "foo")))

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(a.DataDir, "run", "etcd.sock")}, DialTimeout: limit})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for key, part := range map[string]string{
		"/registry/search.task.example.example.com/clustertasks/foo":                  `"details":"second"`,
		"/registry/search.task.example.example.com/customtasks/" + namespace + "/foo": `"kind":"CustomTask"`,
	} {
		stored, err := client.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if len(stored.Kvs) != 1 {
			t.Errorf("the store has no %s", key)
			continue
		}
		contains(t, string(stored.Kvs[0].Value), part)
	}
	kubectl(t, a, "delete", "clustertasks", "foo", "--timeout=20s")
}

func storedRights(t *testing.T, a *harness.Appliance, namespace string) {
	for user, role := range map[string]string{"viewer": "view", "editor": "edit", "administrator": "admin"} {
		kubectl(t, a, "create", "rolebinding", user, "-n", namespace, "--clusterrole="+role, "--user="+user)
	}
	manifest := file(t, storedManifest("CustomTask", "mine"))
	eventually(t, "an editor may create", func() bool {
		return a.Kubectl(t.Context(), "apply", "-n", namespace, "--as=editor", "-f", manifest).Code == 0
	})
	kubectl(t, a, "get", "customtasks", "mine", "-n", namespace, "--as=viewer")
	kubectl(t, a, "delete", "customtasks", "mine", "-n", namespace, "--as=administrator", "--timeout=20s")
	for _, args := range [][]string{
		{"create", "-n", namespace, "--as=viewer", "-f", manifest},
		{"create", "-n", "default", "--as=editor", "-f", manifest},
		{"get", "customtasks", "-A", "--as=viewer"},
		{"get", "clustertasks", "--as=administrator"},
	} {
		if r := a.Kubectl(t.Context(), args...); r.Code == 0 || !strings.Contains(r.Stderr, "Forbidden") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// storedNamespace deletes a namespace with a hundred of each kind in it.
func storedNamespace(t *testing.T, a *harness.Appliance, namespace string) {
	var customs strings.Builder
	for i := range 100 {
		customs.WriteString(storedManifest("CustomTask", fmt.Sprint("t", i)))
	}
	kubectl(t, a, "create", "-n", namespace, "-f", file(t, customs.String()))
	createTasks(t, a, namespace, make([]int, 100)...)
	start := time.Now()
	kubectl(t, a, "delete", "namespace", namespace, "--timeout=30s")
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("a namespace with 100 Tasks and 100 CustomTasks was deleted in %s", took)
	}
	for _, resource := range []string{"combinedtasks", "customtasks"} {
		eventually(t, "no object is left", func() bool {
			return kubectl(t, a, "get", resource, "-n", namespace, "-o", "name") == ""
		})
	}
}

// storedQuota: the quota controller goes on counting with these kinds around.
func storedQuota(t *testing.T, a *harness.Appliance, namespace string) {
	kubectl(t, a, "create", "quota", "counted", "-n", namespace, "--hard=count/configmaps=1")
	eventually(t, "the quota is counted", func() bool {
		kubectl(t, a, "apply", "-n", namespace, "-f", file(t, storedManifest("CustomTask", "one")))
		r := a.Kubectl(t.Context(), "create", "configmap", "one-too-many", "-n", namespace)
		return r.Code != 0 && strings.Contains(r.Stderr, "exceeded quota: counted")
	})
}

func storedApplied(t *testing.T, a *harness.Appliance, namespace string) {
	watch := lines(t, a, "get", "customtasks", "-n", namespace, "-w", "--output-watch-events")
	kubectl(t, a, "apply", "-n", namespace, "-f", file(t, storedManifest("CustomTask", "a", "details: one")))
	expectLine(t, watch, "ADDED a 3")
	kubectl(t, a, "apply", "--server-side", "--force-conflicts", "-n", namespace, "-f", file(t, storedManifest("CustomTask", "a", "details: two")))
	expectLine(t, watch, "MODIFIED a 3")
	for selector, want := range map[string]string{"spec.priority=3": "a", "spec.priority!=3": "", "spec.taskState=Pending,metadata.name=a": "a"} {
		if got := kubectl(t, a, "get", "customtasks", "-n", namespace, "--field-selector", selector, "-o", "jsonpath={.items[*].metadata.name}"); got != want {
			t.Errorf("%s: got %q, want %q", selector, got, want)
		}
	}
	kubectl(t, a, "delete", "customtasks", "a", "-n", namespace, "--timeout=20s")
	expectLine(t, watch, "DELETED a 3")
}

// storedDependencies: what a custom resource can't do.
func storedDependencies(t *testing.T, a *harness.Appliance, namespace string) {
	kubectl(t, a, "apply", "-n", namespace, "-f", file(t, storedManifest("CustomTask", "roof", "dependsOn: [walls]")+storedManifest("CustomTask", "walls")))
	kubectl(t, a, "wait", "--for=jsonpath={.status.blockedByCount}=1", "customtasks/roof", "-n", namespace, "--timeout=10s")
	r := a.Kubectl(t.Context(), "apply", "-n", namespace, "-f", file(t, storedManifest("CustomTask", "walls", "dependsOn: [roof]")))
	if r.Code == 0 {
		t.Error("a cycle is stored")
	}
	contains(t, r.Stderr, "it would depend on itself: walls → roof → walls")
	kubectl(t, a, "patch", "customtasks", "walls", "-n", namespace, "--type=merge", "-p", `{"spec":{"taskState":"Finished"}}`)
	kubectl(t, a, "wait", "--for=jsonpath={.status.blockedByCount}=0", "customtasks/roof", "-n", namespace, "--timeout=10s")
	contains(t, kubectl(t, a, "get", "--raw", searchAPI+"namespaces/"+namespace+"/customtasks/roof/graph"), `"kind":"TaskGraph"`, `"name":"walls","taskState":"Finished"`)
	contains(t, kubectl(t, a, "explain", "customtasks.spec.dependsOn"), "names tasks of the same kind")
}

// storedCache runs a controller's cache of both kinds.
func storedCache(t *testing.T, a *harness.Appliance, namespace string) {
	filled := startCache(t, a, namespace)
	knows := func(want string) func() bool {
		return func() bool {
			var customs searchv1.CustomTaskList
			var clusters searchv1.ClusterTaskList
			if err := errors.Join(filled.List(t.Context(), &customs, client.InNamespace(namespace)), filled.List(t.Context(), &clusters)); err != nil {
				t.Fatal(err)
			}
			var known []string
			for _, item := range customs.Items {
				known = append(known, fmt.Sprintf("%s=%d", item.Name, *item.Spec.Priority))
			}
			for _, item := range clusters.Items {
				if strings.HasPrefix(item.Name, "cached-") {
					known = append(known, item.Name)
				}
			}
			return strings.Join(known, " ") == want
		}
	}
	kubectl(t, a, "create", "-n", namespace, "-f", file(t, storedManifest("CustomTask", "a")))
	eventually(t, "the cache is filled", knows("a=3"))
	kubectl(t, a, "create", "-f", file(t, storedManifest("ClusterTask", "cached-b")))
	kubectl(t, a, "patch", "customtasks", "a", "-n", namespace, "--type=merge", "-p", `{"spec":{"priority":0}}`)
	eventually(t, "the cache follows", knows("a=0 cached-b"))
	kubectl(t, a, "delete", "-n", namespace, "customtasks/a", "clustertasks/cached-b", "--timeout=20s")
	eventually(t, "the cache forgets", knows(""))
}
