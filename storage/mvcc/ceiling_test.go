package mvcc_test

import (
	"errors"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
)

func TestAStoreStartsWithoutABackendAndNeverGivesARevisionTwice(t *testing.T) {
	a, b := newMemoryDB(), newMemoryDB()
	ceiling := mvcc.CeilingFile(filepath.Join(t.TempDir(), "ceiling"))
	open := func() (*mvcc.Store, error) {
		return mvcc.Open(t.Context(), mvcc.Options{
			Backends: []mvcc.Backend{{Name: "a", Database: a}, {Name: "b", Database: b}},
			Router:   letters(2), Ceiling: ceiling,
		})
	}
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, "a1", "v") // 2
	put(t, store, "b1", "v") // 3
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	// With both backends the sequence goes on without a gap.
	if store, err = open(); err != nil {
		t.Fatal(err)
	}
	last := put(t, store, "b1", "w")
	if last != 4 {
		t.Fatalf("the first write after a restart is at %d, want 4", last)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	b.set(func() { b.acquire = func() error { return errors.New("connection refused") } })
	if store, err = open(); err != nil {
		t.Fatalf("no start without backend b: %v", err)
	}
	closeLater(t, store)
	ws := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("b"), StartRevision: 2, End: []byte("c")})
	if _, err := store.Range(t.Context(), get("b1")); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a read of the missing backend: %v", err)
	}
	if _, err := tryPut(t.Context(), store, "b1", "x"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a write to the missing backend: %v", err)
	}
	if _, err := store.Range(t.Context(), all(0)); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a read over both: %v", err)
	}
	rev := put(t, store, "a2", "v")
	if rev <= last {
		t.Fatalf("revision %d may have been given before, up to %d", rev, last)
	}
	if r := read(t, store, get("a1")); r.Count != 1 {
		t.Errorf("the other backend reads %v", r)
	}

	b.set(func() { b.acquire = nil })
	eventually(t, "the missing backend joins", func() bool {
		r, err := store.Range(t.Context(), all(0))
		return err == nil && r.Count == 3
	})
	if next := put(t, store, "b2", "v"); next <= rev {
		t.Errorf("revision %d after %d", next, rev)
	}
	seen := int64(0)
	for seen <= rev {
		for _, e := range next(t, ws).Events {
			if e.Kv.ModRevision <= seen {
				t.Errorf("event at %d after %d", e.Kv.ModRevision, seen)
			}
			seen = e.Kv.ModRevision
		}
	}
}

func TestWithoutACeilingEveryBackendMustAnswerAtTheStart(t *testing.T) {
	b := newMemoryDB()
	b.acquire = func() error { return errors.New("connection refused") }
	_, err := mvcc.Open(t.Context(), mvcc.Options{
		Backends: []mvcc.Backend{{Name: "a", Database: newMemoryDB()}, {Name: "b", Database: b}}, Router: letters(2),
	})
	if err == nil {
		t.Error("the store opens")
	}
}
