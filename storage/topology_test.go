package storage_test

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/routing"
)

// twoFiles keeps Tasks in a file of their own.
func twoFiles(dir string) storage.Config {
	return storage.Config{DataDir: dir, Topology: storage.Topology{
		Backends: []storage.Backend{{Name: "main", Spec: "sqlite://main.db"}, {Name: "tasks", Spec: "sqlite://tasks.db"}},
		Rules:    []routing.Rule{{Backend: "tasks", Group: "example.example.com", Resource: "tasks"}},
	}}
}

func open(t *testing.T, config storage.Config) *storage.Store {
	t.Helper()
	store, err := storage.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func putOp(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte("v")}}}
}

func put(t *testing.T, store *storage.Store, key string) int64 {
	t.Helper()
	response, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{putOp(key)}})
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

func keysOf(t *testing.T, store *storage.Store) string {
	t.Helper()
	response, err := store.Range(t.Context(), &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, kv := range response.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return strings.Join(keys, " ")
}

const (
	taskKey = "/registry/example.example.com/tasks/default/a"
	podKey  = "/registry/pods/default/a"
)

func TestKeysOfTwoBackendsAreOneStore(t *testing.T) {
	dir := t.TempDir()
	store, err := storage.Open(t.Context(), twoFiles(dir))
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{podKey, taskKey, podKey, "compact_rev_key", taskKey} {
		if rev := put(t, store, key); rev != int64(i)+2 {
			t.Errorf("write %d is at revision %d", i+1, rev)
		}
	}
	if got, want := keysOf(t, store), taskKey+" "+podKey+" compact_rev_key"; got != want {
		t.Errorf("the store holds %s, want %s", got, want)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := storage.Open(t.Context(), twoFiles(dir))
	if err != nil {
		t.Fatal(err)
	}
	if rev := put(t, again, podKey); rev != 7 {
		t.Errorf("the first write after a restart is at revision %d, want 7", rev)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"main.db": podKey + " compact_rev_key", "tasks.db": taskKey} {
		if got := keysOf(t, open(t, storage.Config{Spec: "sqlite://" + filepath.Join(dir, file)})); got != want {
			t.Errorf("%s holds %s, want %s", file, got, want)
		}
	}
}

func TestWhatWouldWriteToTwoBackendsIsRefusedWithBothNames(t *testing.T) {
	store := open(t, twoFiles(t.TempDir()))
	everything := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("/registry/"), RangeEnd: []byte("/registry0")},
	}}
	for name, ops := range map[string][]*pb.RequestOp{
		"two puts":     {putOp(podKey), putOp(taskKey)},
		"delete range": {everything},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Txn(t.Context(), &pb.TxnRequest{Success: ops})
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `"main"`) || !strings.Contains(err.Error(), `"tasks"`) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}

func TestAStoreOpensWithoutABackendThatCannotBeReached(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for kind, spec := range map[string]string{
		"postgres": "postgres://u:s3cret@" + address + "/d?sslmode=disable",
		"mysql":    "mysql://u:s3cret@tcp(" + address + ")/d",
	} {
		t.Run(kind, func(t *testing.T) {
			if _, err := storage.Open(t.Context(), storage.Config{Spec: spec}); !errors.Is(err, backend.ErrUnreachable) {
				t.Errorf("alone, it fails with %v", err)
			}
			config := twoFiles(t.TempDir())
			// A store that was complete once knows which revisions it gave.
			complete, err := storage.Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			first := put(t, complete, podKey)
			if err := complete.Close(); err != nil {
				t.Fatal(err)
			}
			config.Backends[1].Spec = spec
			store := open(t, config)
			if rev := put(t, store, podKey); rev <= first {
				t.Errorf("revision %d after %d", rev, first)
			}
			_, err = store.Range(t.Context(), &pb.RangeRequest{Key: []byte(taskKey)})
			if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), `"tasks"`) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("a read of the backend that is not there: %v", err)
			}
		})
	}
}

func TestATopologyThatCannotBeIsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, change := range map[string]func(*storage.Topology){
		"a name twice":            func(t *storage.Topology) { t.Backends[1].Name = "main" },
		"no name":                 func(t *storage.Topology) { t.Backends[1].Name = "" },
		"a rule to nowhere":       func(t *storage.Topology) { t.Rules[0].Backend = "nowhere" },
		"one file for two":        func(t *storage.Topology) { t.Backends[1].Spec = "sqlite://main.db" },
		"an unknown kind":         func(t *storage.Topology) { t.Backends[1].Spec = "oracle://x" },
		"an address with no name": func(t *storage.Topology) { t.Backends[1].Spec = "postgres://u@127.0.0.1:1" },
	} {
		t.Run(name, func(t *testing.T) {
			config := twoFiles(dir)
			change(&config.Topology)
			store, err := storage.Open(t.Context(), config)
			if err == nil {
				_ = store.Close()
				t.Fatal("it opens")
			}
		})
	}
}
