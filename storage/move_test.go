package storage_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/routing"
)

func everything(t *testing.T, store *storage.Store) *pb.RangeResponse {
	t.Helper()
	response, err := store.Range(t.Context(), &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// sameKeys compares keys, values and all numbers.
func sameKeys(t *testing.T, before, after *pb.RangeResponse) {
	t.Helper()
	if len(before.Kvs) != len(after.Kvs) {
		t.Fatalf("%d keys before, %d after", len(before.Kvs), len(after.Kvs))
	}
	for i := range before.Kvs {
		if !proto.Equal(before.Kvs[i], after.Kvs[i]) {
			t.Errorf("before: %v\nafter: %v", before.Kvs[i], after.Kvs[i])
		}
	}
	if after.Header.Revision <= before.Header.Revision {
		t.Errorf("revision %d after %d", after.Header.Revision, before.Header.Revision)
	}
}

// fill stores pods and tasks, some changed, some deleted, one under a lease.
func fill(t *testing.T, store *storage.Store) {
	t.Helper()
	for _, name := range []string{"a", "b", "c", "a", "b"} {
		put(t, store, "/registry/pods/default/"+name)
		put(t, store, "/registry/example.example.com/tasks/default/"+name)
	}
	gone := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("/registry/pods/default/c")}}}
	if _, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{gone}}); err != nil {
		t.Fatal(err)
	}
	lease, err := store.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{TTL: 5000})
	if err != nil {
		t.Fatal(err)
	}
	leased := putOp("/registry/events/default/e")
	leased.GetRequestPut().Lease = lease.ID
	if _, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{leased}}); err != nil {
		t.Fatal(err)
	}
}

func noProgress(string, int, int) {}

func TestChangedRoutesAreRefusedUntilTheKeysAreMoved(t *testing.T) {
	dir := t.TempDir()
	config := twoFiles(dir)
	store, err := storage.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, store)
	before := everything(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	task, pods, events := config.Rules[0], routing.Rule{Backend: "tasks", Resource: "pods"}, routing.Rule{Backend: "tasks", Resource: "events"}
	// There, further, and back to where they were.
	for i, rules := range [][]routing.Rule{{task, pods, events}, {pods}, {task}, nil, {task, events}} {
		config.Rules = rules
		_, err := storage.Open(t.Context(), config)
		var stranded *storage.StrandedError
		if !errors.As(err, &stranded) || stranded.Keys == 0 || !strings.Contains(err.Error(), "taskctl storage move") {
			t.Fatalf("change %d: %v", i, err)
		}
		moved, err := storage.Move(t.Context(), config, noProgress)
		if err != nil {
			t.Fatal(err)
		}
		if moved.Keys != stranded.Keys {
			t.Errorf("change %d: %d keys were moved, %d were stranded", i, moved.Keys, stranded.Keys)
		}
		store, err := storage.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		after := everything(t, store)
		sameKeys(t, before, after)
		if leases, err := store.LeaseLeases(t.Context(), &pb.LeaseLeasesRequest{}); err != nil || len(leases.Leases) != 1 {
			t.Errorf("leases: %v, %v", leases, err)
		}
		if rev := put(t, store, "/registry/other"); rev != after.Header.Revision+1 {
			t.Errorf("a write after the move is at %d, after %d", rev, after.Header.Revision)
		}
		before = everything(t, store)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestABackendThatIsGoneIsEmptied(t *testing.T) {
	dir := t.TempDir()
	store, err := storage.Open(t.Context(), twoFiles(dir))
	if err != nil {
		t.Fatal(err)
	}
	fill(t, store)
	before := everything(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	config := storage.Config{Spec: "sqlite", DataDir: dir}
	var stranded *storage.StrandedError
	if _, err := storage.Open(t.Context(), config); !errors.As(err, &stranded) {
		t.Fatalf("the start is not refused: %v", err)
	}
	if _, err := storage.Move(t.Context(), config, noProgress); err != nil {
		t.Fatal(err)
	}
	sameKeys(t, before, everything(t, open(t, config)))
}

// TestAMoveThatEndsAnywhereIsEndedByTheNext ends moves after each of their
// steps.
func TestAMoveThatEndsAnywhereIsEndedByTheNext(t *testing.T) {
	dir := t.TempDir()
	config := twoFiles(dir)
	store, err := storage.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		put(t, store, "/registry/pods/default/"+strings.Repeat("x", i+1))
	}
	before := everything(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	config.Rules = []routing.Rule{{Backend: "tasks", Resource: "pods"}}
	for stopAfter := 1; ; stopAfter++ {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		_, err := storage.Move(ctx, config, func(string, int, int) {
			if steps++; steps == stopAfter {
				cancel()
			}
		})
		cancel()
		if err == nil {
			break
		}
		if _, err := storage.Open(t.Context(), config); err == nil || !strings.Contains(err.Error(), "has not ended") {
			t.Fatalf("after an end at step %d the store opens: %v", stopAfter, err)
		}
	}
	sameKeys(t, before, everything(t, open(t, config)))
}
