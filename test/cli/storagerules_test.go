package cli

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"
)

// harikube is a topology file as HariKube has them, with two SQLite files.
const harikube = `backends:
- name: kube-system
  endpoint: sqlite://./db/system.db?_journal=WAL&cache=shared
  namespace:
    namespace: kube-system
    kinds: [pods, services]
- name: rbac
  endpoint: sqlite://rbac.db
  regexp:
    prefix: ^(clusterroles|roles)/
    key: ^(clusterroles|roles)/
  compactInterval: 5m
- name: tasks
  endpoint: sqlite://tasks.db
  customresource:
    group: example.example.com
    kind: tasks
- name: pods
  endpoint: sqlite://pods.db
  prefix:
    prefix: pods
`

// explainOutput is the JSON of storage explain.
type explainOutput struct {
	Key, Rule, Backend, Kind, Where, Endpoint string
	RuleNumber                                int
	Row                                       *struct{ ID, ModRevision, Version int64 }
	Keys                                      int64
	Backends                                  []string
}

// TestStorageByATopologyFile serves a HariKube file and asks where things are.
func TestStorageByATopologyFile(t *testing.T) {
	s := newShell(t)
	file := s.write("topology.yaml", harikube)
	store := s.serve("data", "--topology", file, "--storage", "sqlite")
	store.await("topology.yaml:12: backends[1].compactInterval: it has no effect here")
	data := filepath.Join(s.home, "data")
	places := map[string]string{
		"/registry/pods/kube-system/dns":                    "kube-system",
		"/registry/services/specs/kube-system/dns":          "kube-system",
		"/registry/secrets/kube-system/token":               "default",
		"/registry/clusterroles/admin":                      "rbac",
		"/registry/roles/default/reader":                    "rbac",
		"/registry/rolebindings/default/reader":             "default",
		"/registry/example.example.com/tasks/default/one":   "tasks",
		"/registry/example.example.com/others/default/task": "default",
		"/registry/pods/default/web":                        "pods",
		"/registry/podtemplates/default/web":                "default",
	}
	for key, backend := range places {
		revision := store.put(key, "value")
		var e explainOutput
		s.object(0, &e, "storage", "explain", "--endpoint", store.url, key)
		if e.Key != key || e.Backend != backend || e.Row == nil || e.Row.ModRevision != revision || (e.Rule == "default") != (backend == "default") {
			t.Errorf("%s: %+v, want %s", key, e, backend)
		}
	}
	var routes struct {
		Rules []struct {
			Rule, Backend string
			Keys          int64
		}
		Backends []struct {
			Name, Kind, Down string
			Keys, Bytes      int64
			WritesPerSecond  float64
		}
	}
	s.object(0, &routes, "storage", "routes", "--endpoint", store.url)
	counts := map[string]int64{}
	for _, rule := range routes.Rules {
		counts[rule.Backend] += rule.Keys
	}
	if fmt.Sprint(counts) != "map[default:4 kube-system:2 pods:1 rbac:2 tasks:1]" || routes.Rules[len(routes.Rules)-1].Rule != "default" {
		t.Errorf("%+v", routes.Rules)
	}
	for _, backend := range routes.Backends {
		if backend.Keys != counts[backend.Name] || backend.Bytes == 0 || backend.Kind != "sqlite" || backend.Down != "" {
			t.Errorf("%+v", backend)
		}
	}
	if out := s.must(0, "storage", "routes", "--endpoint", store.url).Stdout; !strings.Contains(out, "WRITES/S") || !strings.Contains(out, "prefix=/registry/services/specs/kube-system/") {
		t.Errorf("%s", out)
	}
	store.stop()

	// The same of a store that does not run, with names instead of keys.
	where := []string{"--data-dir", data, "--topology", file, "--storage", "sqlite"}
	for args, want := range map[string]explainOutput{
		"pods -n kube-system dns":       {Key: "/registry/pods/kube-system/dns", Backend: "kube-system", Where: filepath.Join(data, "db", "system.db")},
		"tasks one":                     {Key: "/registry/example.example.com/tasks/default/one", Backend: "tasks", Where: filepath.Join(data, "tasks.db")},
		"clusterroles/admin":            {Key: "/registry/clusterroles/admin", Backend: "rbac", Where: filepath.Join(data, "rbac.db")},
		"services dns -n kube-system":   {Key: "/registry/services/specs/kube-system/dns", Backend: "kube-system", Where: filepath.Join(data, "db", "system.db")},
		"others.example.example.com no": {Key: "/registry/example.example.com/others/default/no", Backend: "default"},
	} {
		var e explainOutput
		s.object(0, &e, append(append([]string{"storage", "explain"}, strings.Fields(args)...), where...)...)
		if e.Key != want.Key || e.Backend != want.Backend || (e.Where == "") != (want.Where == "") || !strings.HasSuffix(e.Where, want.Where) {
			t.Errorf("%s: %+v, want %+v", args, e, want)
		}
	}
	var below explainOutput
	s.object(0, &below, append([]string{"storage", "explain", "pods"}, where...)...)
	if below.Keys != 2 || fmt.Sprint(below.Backends) != "[kube-system pods]" {
		t.Errorf("all pods: %+v", below)
	}
	s.fails(2, append([]string{"storage", "explain", "widgets", "one"}, where...), "RESOURCE.GROUP")
	s.fails(2, append([]string{"storage", "explain", "combinedtasks", "one"}, where...), "stored nowhere")
	s.fails(2, append([]string{"storage", "explain", "clusterroles", "one", "-n", "a"}, where...), "have no namespace")

	broken := s.write("broken.yaml", strings.Replace(harikube, "kind: tasks", "knd: tasks", 1))
	s.fails(2, []string{"up", "--topology", broken}, broken+":17: backends[2].customresource.knd: there is no such field")
	hidden := s.write("hidden.yaml", harikube+"- {name: late, endpoint: \"sqlite://late.db\", prefix: {prefix: pods/default/}}\n")
	s.fails(2, []string{"storage", "serve", "--topology", hidden}, hidden+":22: backends[4]: it can never match", `the backend "pods" in line 18`)
	both := s.write("both.yaml", twoBackends)
	s.fails(2, []string{"up", "--topology", file, "-f", both}, both+":4: storage: --topology says the same")
}

// TestStorageVerify breaks rows by hand and lets them be found.
func TestStorageVerify(t *testing.T) {
	s := newShell(t)
	two := s.write("two.yaml", twoBackends)
	store := s.serve("data", "-f", two)
	fillStore(t, store)
	type report struct {
		Backends []struct{ Name string }
		Breaches []struct{ Rule, Backend, Key, Message string }
	}
	var clean report
	s.object(0, &clean, "storage", "verify", "--endpoint", store.url)
	if len(clean.Backends) != 2 || len(clean.Breaches) != 0 {
		t.Errorf("%+v", clean)
	}
	store.stop()
	offline := []string{"storage", "verify", "--data-dir", filepath.Join(s.home, "data"), "-f", two}
	s.must(0, offline...)

	tasks := filepath.Join(s.home, "data", "tasks.db")
	for name, test := range map[string]struct{ statement, rule string }{
		"a key where no route leads": {"UPDATE versions SET key = CAST('/registry/secrets/default/lost' AS BLOB) WHERE id = (SELECT max(id) FROM versions)", "route"},
		"a lease that is gone":       {"DELETE FROM leases", "lease"},
		"a revision that goes back":  {"UPDATE versions SET rev = 2 WHERE id = (SELECT max(id) FROM versions)", "order"},
		"a version that is left out": {"UPDATE versions SET version = 77 WHERE id = (SELECT max(id) FROM versions WHERE prev > 0)", "versions"},
		"a newest row that is gone":  {"DELETE FROM versions WHERE id = (SELECT max(id) FROM versions)", "meta"},
	} {
		kept, err := os.ReadFile(tasks)
		if err != nil {
			t.Fatal(err)
		}
		change(t, tasks, test.statement)
		var broken report
		s.object(1, &broken, offline...)
		found := false
		for _, breach := range broken.Breaches {
			found = found || breach.Rule == test.rule && breach.Backend == "tasks" && breach.Message != ""
		}
		if !found {
			t.Errorf("%s: %+v", name, broken.Breaches)
		}
		if out := s.must(1, offline...); !strings.Contains(out.Stdout, "tasks: "+test.rule+":") || !strings.Contains(out.Stderr, "breach") {
			t.Errorf("%s: %s%s", name, out.Stdout, out.Stderr)
		}
		if err := os.WriteFile(tasks, kept, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(tasks + "-wal"); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	s.must(0, offline...)
}

// change runs a statement on a SQLite file that nobody uses.
func change(t *testing.T, file, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

const sampleTask = `{"apiVersion":"example.example.com/v1","kind":"Task","metadata":{"name":"task-sample-5"},"spec":{"priority":3,"deadline":"2035-01-01T00:00:00Z"}}`

// TestStorageOfARunningAppliance asks an appliance where a Task is, backs it up
// while it runs, and starts another one from the backup, on one database.
func TestStorageOfARunningAppliance(t *testing.T) {
	s := newShell(t)
	two := s.write("two.yaml", twoBackends)
	s.must(0, append([]string{"up", "-d", "-q", "-f", two}, bare...)...)
	s.kubectl("create", "-f", s.write("task.json", sampleTask))
	const key = "/registry/example.example.com/tasks/default/task-sample-5"
	for _, args := range [][]string{{"tasks", "-n", "default", "task-sample-5"}, {"tk", "task-sample-5"}, {key}} {
		var e explainOutput
		s.object(0, &e, append([]string{"storage", "explain"}, args...)...)
		if e.Key != key || e.Rule != "group=example.example.com" || e.Backend != "tasks" || e.Row == nil || !strings.HasSuffix(e.Where, filepath.Join(s.state("taskctl"), "tasks.db")) {
			t.Errorf("%v: %+v", args, e)
		}
	}
	var deployments explainOutput
	s.object(0, &deployments, "storage", "explain", "deploy", "web")
	if deployments.Key != "/registry/deployments/default/web" || deployments.Rule != "default" || deployments.Backend != "main" || deployments.Row != nil {
		t.Errorf("%+v", deployments)
	}
	s.fails(1, []string{"storage", "explain", "widgets", "one"}, `no resource "widgets"`)
	if out := s.must(0, "storage", "routes").Stdout; !strings.Contains(out, "group=example.example.com") {
		t.Errorf("%s", out)
	}
	s.must(0, "storage", "verify")
	file := filepath.Join(s.home, "all.backup")
	s.must(0, "storage", "backup", file)
	s.fails(1, []string{"storage", "restore", file}, "is running", "taskctl down")
	uid := s.kubectl("get", "task", "task-sample-5", "-o", "jsonpath={.metadata.uid}")
	s.must(0, "down")
	s.must(0, "storage", "verify")

	s.must(0, "storage", "restore", file, "--name", "copy", "--storage", "sqlite")
	s.must(0, append([]string{"up", "-d", "-q", "--name", "copy"}, bare...)...)
	if got := s.must(0, "--name", "copy", "kubectl", "get", "task", "task-sample-5", "-o", "jsonpath={.metadata.uid}").Stdout; got != uid {
		t.Errorf("the restored Task is %q, it was %q", got, uid)
	}
	s.must(0, "storage", "verify", "--name", "copy")
	s.must(0, "down", "--name", "copy")
}

// TestStorageBackupOfTheEmbeddedEtcd is about an appliance whose API server
// talks to etcd directly.
func TestStorageBackupOfTheEmbeddedEtcd(t *testing.T) {
	s := newShell(t)
	s.must(0, append([]string{"up", "-d", "-q", "--storage", "etcd"}, bare...)...)
	s.kubectl("create", "configmap", "kept")
	s.kubectl("create", "-f", s.write("task.json", sampleTask))
	var e explainOutput
	s.object(0, &e, "storage", "explain", "configmaps", "kept")
	if e.Key != "/registry/configmaps/default/kept" || e.Rule != "default" || e.Backend != "etcd" || e.Row == nil {
		t.Errorf("%+v", e)
	}
	if out := s.must(0, "storage", "routes").Stdout; !strings.Contains(out, "etcd") {
		t.Errorf("%s", out)
	}
	running, stopped := filepath.Join(s.home, "running.backup"), filepath.Join(s.home, "stopped.backup")
	s.must(0, "storage", "backup", running)
	s.must(0, "down")
	var taken backupOutput
	s.object(0, &taken, "storage", "backup", stopped)
	for _, file := range []string{running, stopped} {
		target := filepath.Join(s.home, filepath.Base(file)+".data")
		s.must(0, "storage", "restore", file, "--data-dir", target, "--storage", "sqlite")
		if !holds(t, filepath.Join(target, "store.db"), "/registry/configmaps/default/kept") {
			t.Errorf("%s: the ConfigMap is not there", file)
		}
	}

	// Into the default topology, an etcd and a SQLite file, and again over it.
	usual := []string{"--data-dir", filepath.Join(s.home, "usual")}
	for _, extra := range [][]string{nil, {"--replace"}} {
		var done backupOutput
		s.object(0, &done, slices.Concat([]string{"storage", "restore", stopped}, extra, usual)...)
		if done.ByBackend["main"] == 0 || done.ByBackend["tasks"] == 0 || done.ByBackend["main"]+done.ByBackend["tasks"] != taken.Keys {
			t.Errorf("%+v of %+v", done, taken)
		}
		s.must(0, append([]string{"storage", "verify"}, usual...)...)
	}
	s.fails(1, append([]string{"storage", "restore", stopped}, usual...), "is not empty", "nothing was changed")
	s.must(0, slices.Concat([]string{"up", "-d", "-q"}, usual, bare)...)
	if out := s.must(0, slices.Concat(usual, []string{"kubectl", "get", "configmaps", "-o", "name"})...).Stdout; !strings.Contains(out, "configmap/kept") {
		t.Errorf("%s", out)
	}
	s.must(0, append([]string{"storage", "verify"}, usual...)...)
	s.must(0, append([]string{"down"}, usual...)...)

	// And back into an etcd: the appliance starts on it.
	s.fails(1, []string{"storage", "restore", stopped}, `"etcd" is not empty`, "nothing was changed")
	var done backupOutput
	s.object(0, &done, "storage", "restore", stopped, "--replace")
	if done.Keys != taken.Keys || done.Start <= taken.Revision {
		t.Errorf("%+v of %+v", done, taken)
	}
	s.must(0, append([]string{"up", "-d", "-q"}, bare...)...)
	if revision := s.kubectl("get", "configmaps", "kept", "-o", "jsonpath={.metadata.resourceVersion}"); revision != fmt.Sprint(e.Row.ModRevision) {
		t.Errorf("the ConfigMap is at %s, it was at %d", revision, e.Row.ModRevision)
	}
	var newest struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(s.kubectl("get", "--raw", "/api/v1/namespaces/default/configmaps")), &newest); err != nil {
		t.Fatal(err)
	}
	if at, err := strconv.ParseInt(newest.Metadata.ResourceVersion, 10, 64); err != nil || at < done.Start {
		t.Errorf("lists are at %s, below %d", newest.Metadata.ResourceVersion, done.Start)
	}
	s.kubectl("create", "configmap", "later")
	s.must(0, "down")
}
