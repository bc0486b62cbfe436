package mvcc_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/server"
)

var errLost = errors.New("connection lost")

// once is a hook that acts on the first batch with versions only.
func once(act func(*backend.Batch) error) func(*backend.Batch) error {
	var mu sync.Mutex
	done := false
	return func(b *backend.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		if done || len(b.Versions) == 0 {
			return nil
		}
		done = true
		return act(b)
	}
}

// checkHistory verifies that revisions have no gap and that every key's chain
// of versions is whole: nothing was stored twice and nothing lost.
func checkHistory(t *testing.T, db *memoryDB, want int) {
	t.Helper()
	db.mu.Lock()
	defer db.mu.Unlock()
	if len(db.versions) != want {
		t.Errorf("%d versions are stored, want %d", len(db.versions), want)
	}
	newest := map[string]backend.Version{}
	for i, v := range db.versions {
		if v.ID != int64(i)+1 || v.Rev != int64(i)+2 {
			t.Errorf("version %d has ID %d and revision %d", i, v.ID, v.Rev)
		}
		old := newest[string(v.Key)]
		if v.Prev != old.ID || v.Version != old.Version+1 {
			t.Errorf("%s at %d replaces %d and is its version %d; the one before is %d with %d", v.Key, v.Rev, v.Prev, v.Version, old.ID, old.Version)
		}
		newest[string(v.Key)] = v
	}
}

func TestAnUnknownOutcomeIsFoundOutBeforeAnybodyIsAnswered(t *testing.T) {
	tests := []struct {
		name string
		// fault makes the database fail on the second write.
		fault func(db *memoryDB)
	}{
		{"the commit happened and was answered with an error", func(db *memoryDB) {
			db.after = once(func(*backend.Batch) error { return errLost })
		}},
		{"the commit did not happen", func(db *memoryDB) {
			db.before = once(func(*backend.Batch) error { return errLost })
		}},
		{"the commit arrives before the takeover", func(db *memoryDB) {
			db.before = once(func(b *backend.Batch) error {
				epoch := db.state.Epoch
				db.acquire = func() error {
					// The lock is held by Acquire; the late commit is
					// the last thing of the old session.
					db.acquire = nil
					db.mu.Unlock()
					defer db.mu.Lock()
					return db.store(epoch, b)
				}
				return errLost
			})
		}},
		{"the commit arrives after the takeover", func(db *memoryDB) {
			db.before = once(func(b *backend.Batch) error {
				epoch, late := db.state.Epoch, *b
				db.before = func(*backend.Batch) error {
					db.set(func() { db.before = nil })
					if err := db.store(epoch, &late); !errors.Is(err, backend.ErrFenced) {
						return fmt.Errorf("a commit of the old session is stored: %v", err)
					}
					return nil
				}
				return errLost
			})
		}},
		{"the takeover fails at first", func(db *memoryDB) {
			db.after = once(func(*backend.Batch) error {
				db.set(func() {
					failures := 3
					db.acquire = func() error {
						if failures--; failures >= 0 {
							return errLost
						}
						return nil
					}
				})
				return errLost
			})
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := newMemoryDB()
			store := newMemory(t, db)
			ws := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("a"), End: []byte("b"), PrevKV: true})
			put(t, store, "a", "1")
			db.set(func() { test.fault(db) })
			if rev := put(t, store, "a", "2"); rev != 3 {
				t.Errorf("the write is at %d, want 3", rev)
			}
			if rev := put(t, store, "a", "3"); rev != 4 {
				t.Errorf("the write after it is at %d, want 4", rev)
			}
			if got := db.takeovers(); got < 2 {
				t.Errorf("the database was acquired %d times", got)
			}
			checkHistory(t, db, 3)
			r := read(t, store, get("a"))
			if kv := r.Kvs[0]; string(kv.Value) != "3" || kv.Version != 3 || kv.CreateRevision != 2 {
				t.Errorf("the key is %v", kv)
			}
			for rev := int64(2); rev <= 4; {
				for _, e := range next(t, ws).Events {
					if e.Kv.ModRevision != rev || (rev > 2) != (e.PrevKv != nil) {
						t.Errorf("event %v, want revision %d", e, rev)
					}
					rev++
				}
			}
		})
	}
}

func TestARequestThatFailsAloneFailsNobodyElse(t *testing.T) {
	db := newMemoryDB()
	db.before = func(b *backend.Batch) error {
		for _, v := range b.Versions {
			if string(v.Value) == "poison" {
				return &backend.Rejected{Err: errors.New("value too long for the column")}
			}
		}
		return nil
	}
	store := newMemory(t, db)
	const clients, writes = 8, 100
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			for i := range writes {
				value := "fine"
				if (client+i)%5 == 0 {
					value = "poison"
				}
				_, err := tryPut(t.Context(), store, fmt.Sprintf("a%d", client), value)
				if (err != nil) != (value == "poison") {
					t.Errorf("put of %s: %v", value, err)
				}
			}
		})
	}
	group.Wait()
	checkHistory(t, db, clients*writes*4/5)
}

func TestADeadlockIsRetriedUnseen(t *testing.T) {
	db := newMemoryDB()
	refused := 0
	db.before = func(*backend.Batch) error {
		if refused++; refused%3 != 0 {
			return &backend.Rejected{Err: errors.New("deadlock"), Retry: true}
		}
		return nil
	}
	store := newMemory(t, db)
	for i := range 20 {
		put(t, store, "a", fmt.Sprint(i))
	}
	checkHistory(t, db, 20)
}

func TestWhatAnotherOwnerWroteIsFoundAndMemoryIsReplaced(t *testing.T) {
	db := newMemoryDB()
	store := newMemory(t, db)
	put(t, store, "a1", "ours") // revision 2
	ws := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("a"), End: []byte("b"), StartRevision: 2})
	if r := next(t, ws); len(r.Events) != 1 {
		t.Fatalf("first event: %v", r)
	}

	// Another process takes the database over and writes to it; the first
	// one has not noticed.
	stranger, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = stranger.Apply(t.Context(), &backend.Batch{AfterID: 1, LastRev: 4, Versions: []backend.Version{
		{ID: 2, Rev: 3, Prev: 1, Create: 2, Version: 2, Key: []byte("a1"), Value: []byte("theirs")},
		{ID: 3, Rev: 4, Create: 4, Version: 1, Key: []byte("a2"), Value: []byte("theirs")},
	}})
	if err != nil {
		t.Fatal(err)
	}

	// A compare on what memory holds must not win over what is stored.
	r, err := store.Txn(t.Context(), &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: []byte("a1"), Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: 2}}},
		Success: []*pb.RequestOp{putOp("a1", "lost update")},
	})
	if err != nil || r.Succeeded {
		t.Fatalf("a write on top of a stale version: %v, %v", r, err)
	}
	if got := read(t, store, get("a1")); string(got.Kvs[0].Value) != "theirs" || got.Header.Revision != 4 {
		t.Errorf("after the takeover: %v", got)
	}
	if rev := put(t, store, "a3", "ours"); rev != 5 {
		t.Errorf("the next write is at %d, want 5", rev)
	}
	for rev := int64(3); rev <= 5; {
		for _, e := range next(t, ws).Events {
			if e.Kv.ModRevision != rev {
				t.Fatalf("event at %d, want %d", e.Kv.ModRevision, rev)
			}
			rev++
		}
	}
}

func TestAFailoverThatLosesWritesIsSaidAndEndsWatches(t *testing.T) {
	db := newMemoryDB()
	store := newMemory(t, db)
	for i := range 5 {
		put(t, store, "a", fmt.Sprint(i)) // revisions 2 to 6
	}
	ws := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("a"), End: []byte("b")})

	// The copy that takes over is two writes behind.
	db.set(func() {
		db.versions = db.versions[:3]
		db.state.LastID, db.state.LastRev = 3, 4
		db.before = once(func(*backend.Batch) error { return errLost })
	})
	rev := put(t, store, "a", "after")
	if rev <= 6 {
		t.Fatalf("revision %d was given before", rev)
	}
	if r := next(t, ws); r.CompactRevision <= 6 {
		t.Fatalf("the watch is told %+v, want a compaction above everything shown", r)
	}
	if _, err := store.Range(t.Context(), all(6)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a revision that is void now: %v, want ErrCompacted", err)
	}
	kv := read(t, store, get("a")).Kvs[0]
	if string(kv.Value) != "after" || kv.Version != 4 {
		t.Errorf("the key is %v, want version 4", kv)
	}
	fresh := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("a"), End: []byte("b"), StartRevision: rev})
	if r := next(t, fresh); len(r.Events) != 1 || r.Events[0].Kv.ModRevision != rev {
		t.Errorf("a new watch: %+v", r)
	}
}

func TestALostOwnershipAnswersNothing(t *testing.T) {
	db := newMemoryDB()
	db.term = 1 // a nanosecond: never provable when it is asked
	store := newMemory(t, db)
	_, err := store.Range(t.Context(), get("a"))
	if err == nil {
		t.Error("a read is answered without a proof of ownership")
	}
}
