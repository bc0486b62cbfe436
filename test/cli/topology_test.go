package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/taskctl-dev/taskctl/storage"
)

const twoBackends = `apiVersion: taskctl.example.com/v1alpha1
kind: Appliance
storage:
  default: main
  backends:
  - {name: main, endpoint: "sqlite://main.db"}
  - {name: tasks, endpoint: "sqlite://tasks.db"}
  routes:
  - {backend: tasks, group: example.example.com}
  - {backend: tasks, prefix: /registry/events/}
  - {backend: tasks, resource: configmaps, namespace: "load-*"}
`

// TestTwoBackends starts with a file, and again without it: what was stored in
// two databases is there as if it were one.
func TestTwoBackends(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(s.home, "taskctl.yaml")
	if err := os.WriteFile(file, []byte(twoBackends), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(0, "up", "-d", "-q", "-f", file)
	s.must(0, "demo", "--tasks", "2")
	s.kubectl("create", "namespace", "load-1")
	s.kubectl("create", "configmap", "elsewhere", "-n", "load-1")
	s.kubectl("create", "configmap", "here")
	if out := s.must(0, "status").Stdout; !strings.Contains(out, "sqlite") {
		t.Errorf("status: %s", out)
	}
	s.must(0, "down")
	s.must(0, "up", "-d", "-q")
	if out := s.kubectl("get", "configmaps", "-A", "-o", "name"); !strings.Contains(out, "configmap/elsewhere") || !strings.Contains(out, "configmap/here") {
		t.Errorf("after a restart: %s", out)
	}
	s.must(0, "down")
	s.fails(1, []string{"up", "-d", "-q", "--storage", "sqlite"}, "stored keys would be stranded", "taskctl storage move")
	s.must(0, "up", "-d", "-q") // as before
	s.must(0, "down")

	for file, keys := range map[string]map[string]bool{
		"tasks.db": {"/registry/example.example.com/tasks/": true, "/registry/events/": true, "/registry/configmaps/load-1/elsewhere": true, "/registry/configmaps/default/": false, "/registry/namespaces/": false},
		"main.db":  {"/registry/example.example.com/tasks/": false, "/registry/events/": false, "/registry/configmaps/load-1/": false, "/registry/configmaps/default/here": true, "/registry/namespaces/load-1": true},
	} {
		for prefix, want := range keys {
			if got := holds(t, filepath.Join(s.state("taskctl"), file), prefix); got != want {
				t.Errorf("%s has keys below %s: %v", file, prefix, got)
			}
		}
	}
}

// TestAFolderOfEtcdAloneMoves moves what an appliance with etcd alone holds
// to where a new one keeps it.
func TestAFolderOfEtcdAloneMoves(t *testing.T) {
	s := newShell(t)
	s.must(0, "up", "-d", "-q", "--storage", "etcd")
	s.must(0, "demo", "--tasks", "2")
	s.kubectl("create", "configmap", "here")
	before := s.kubectl("get", "tasks,configmaps", "-n", "default", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion} {end}")
	s.fails(1, []string{"storage", "move"}, "taskctl down")
	s.must(0, "down")
	s.must(0, "storage", "move")
	s.must(0, "up", "-d", "-q")
	if out := s.must(0, "status").Stdout; !strings.Contains(out, "etcd+sqlite") {
		t.Errorf("status: %s", out)
	}
	if after := s.kubectl("get", "tasks,configmaps", "-n", "default", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion} {end}"); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
	s.must(0, "down")
	if !holds(t, filepath.Join(s.state("taskctl"), "tasks.db"), "/registry/example.example.com/tasks/") {
		t.Error("tasks.db has no Tasks")
	}
}

// holds says whether a SQLite file has a key that begins with the prefix.
func holds(t *testing.T, file, prefix string) bool {
	t.Helper()
	store, err := storage.Open(t.Context(), storage.Config{Spec: "sqlite://" + file})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	end := []byte(prefix)
	end[len(end)-1]++
	response, err := store.Range(t.Context(), &pb.RangeRequest{Key: []byte(prefix), RangeEnd: end, CountOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return response.Count > 0
}
