package aggregator_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/aggregator"
	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/test/harness"
)

const clusterTasksPath = "/apis/search.task.example.example.com/v1/clustertasks"

// storedKind is what the tests of the stored kinds differ in.
type storedKind struct {
	control
	name, resource string
	namespace      string // "" for a cluster-scoped kind
}

// path of the collection.
func (k storedKind) path() string {
	if k.namespace == "" {
		return "/apis/search.task.example.example.com/v1/" + k.resource
	}
	return in(k.namespace)[:len(in(k.namespace))-len("combinedtasks")] + k.resource
}

// manifest is one object; fields are more lines of its spec.
func (k storedKind) manifest(name string, fields ...string) string {
	text := fmt.Sprintf("apiVersion: search.task.example.example.com/v1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  deadline: \"2099-01-02T03:04:05Z\"\n", k.name, name)
	for _, field := range fields {
		text += "  " + field + "\n"
	}
	return text
}

func (k storedKind) file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "object.yaml")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// try runs kubectl in the kind's namespace.
func (k storedKind) try(t *testing.T, args ...string) harness.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if k.namespace != "" {
		args = append(args, "-n", k.namespace)
	}
	return k.Kubectl(ctx, args...)
}

func (k storedKind) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	r := k.try(t, args...)
	if r.Code != 0 {
		t.Fatalf("kubectl %q: exit code %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// refused checks that kubectl fails and says this.
func (k storedKind) refused(t *testing.T, parts []string, args ...string) {
	t.Helper()
	r := k.try(t, args...)
	for _, part := range parts {
		if r.Code == 0 || !strings.Contains(r.Stderr, part) {
			t.Errorf("kubectl %q: exit code %d, want %q in %s%s", args, r.Code, part, r.Stdout, r.Stderr)
		}
	}
}

// field reads one field of an object.
func (k storedKind) field(t *testing.T, name, path string) string {
	t.Helper()
	return k.kubectl(t, "get", k.resource, name, "-o", "jsonpath={"+path+"}")
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// register lets kube-apiserver route the aggregated API to this server.
func (s *server) register(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.address)
	must(t, err)
	bundle, err := os.ReadFile(s.pki("ca.crt"))
	must(t, err)
	registration := fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: taskctl-aggregator, namespace: taskctl-system}
spec: {type: ExternalName, externalName: 127.0.0.1}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.search.task.example.example.com}
spec:
  group: search.task.example.example.com
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  caBundle: %s
  service: {namespace: taskctl-system, name: taskctl-aggregator, port: %s}
`, base64.StdEncoding.EncodeToString(bundle), port)
	file := storedKind{}.file(t, registration)
	if r := s.Kubectl(t.Context(), "apply", "-f", file); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	t.Cleanup(func() {
		if r := s.Kubectl(context.WithoutCancel(t.Context()), "delete", "-f", file); r.Code != 0 {
			t.Error(r.Stderr)
		}
	})
	eventually(t, "the API server routes to the aggregator", func() error {
		r := s.Kubectl(t.Context(), "get", "clustertasks")
		if r.Code != 0 {
			return fmt.Errorf("exit code %d: %s", r.Code, r.Stderr)
		}
		return nil
	})
}

func (c control) storing(t *testing.T) aggregator.Options {
	t.Helper()
	options := c.options(t)
	options.Storage = &aggregator.Endpoint{URL: "unix://" + filepath.Join(c.DataDir, "run", "etcd.sock")}
	return options
}

// store is a client of the appliance's store.
func (c control) store(t *testing.T) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(c.DataDir, "run", "etcd.sock")}, DialTimeout: patience})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// key is where an object is stored.
func (k storedKind) key(name string) string {
	key := "/registry/search.task.example.example.com/" + k.resource + "/"
	if k.namespace != "" {
		key += k.namespace + "/"
	}
	return key + name
}

// behind changes an object in the store itself, and may move it.
func (k storedKind) behind(t *testing.T, name string, change func(*searchv1.ClusterTask)) {
	t.Helper()
	client := k.store(t)
	stored, err := client.Get(t.Context(), k.key(name))
	must(t, err)
	if len(stored.Kvs) != 1 {
		t.Fatalf("the store has no %s", k.key(name))
	}
	var task searchv1.ClusterTask
	must(t, json.Unmarshal(stored.Kvs[0].Value, &task))
	change(&task)
	changed, err := json.Marshal(task)
	must(t, err)
	if task.Namespace != k.namespace {
		_, err = client.Delete(t.Context(), k.key(name))
		must(t, err)
		k.namespace = task.Namespace
	}
	_, err = client.Put(t.Context(), k.key(name), string(changed))
	must(t, err)
}
