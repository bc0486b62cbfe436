package mvcc_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
)

// sharedDB is a database in memory that others write to and that takes few
// versions, each of another key, in one batch.
type sharedDB struct {
	*memoryDB
	limits  backend.Limits
	batches []backend.Batch

	foreign sync.Mutex
	changes []backend.Change
	notify  func()
}

func (db *sharedDB) Acquire(ctx context.Context) (backend.Session, error) {
	session, err := db.memoryDB.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &sharedSession{Session: session, db: db}, nil
}

// change is a transaction of somebody else's.
func (db *sharedDB) change(mark int64, changes ...backend.Change) {
	db.foreign.Lock()
	defer db.foreign.Unlock()
	for _, c := range changes {
		c.Mark = mark
		db.changes = append(db.changes, c)
	}
	db.notify()
}

type sharedSession struct {
	backend.Session
	db *sharedDB
}

func (s *sharedSession) Limits() backend.Limits { return s.db.limits }

func (s *sharedSession) Foreign() []backend.Change {
	s.db.foreign.Lock()
	defer s.db.foreign.Unlock()
	return s.db.changes
}

func (s *sharedSession) Notify(fn func()) {
	s.db.foreign.Lock()
	defer s.db.foreign.Unlock()
	s.db.notify = fn
	fn()
}

func (s *sharedSession) Apply(ctx context.Context, batch *backend.Batch) error {
	err := s.Session.Apply(ctx, batch)
	if err == nil {
		s.db.foreign.Lock()
		s.db.changes = s.db.changes[batch.Foreign:]
		s.db.batches = append(s.db.batches, *batch)
		s.db.foreign.Unlock()
	}
	return err
}

func newShared(t *testing.T, limits backend.Limits) (*mvcc.Store, *sharedDB) {
	t.Helper()
	db := &sharedDB{memoryDB: newMemoryDB(), limits: limits}
	store := openWith(t, mvcc.Options{Backends: []mvcc.Backend{{Name: "shared", Database: db}}})
	closeLater(t, store)
	return store, db
}

func TestForeignChangesGetRevisionsOfTheirOwn(t *testing.T) {
	store, db := newShared(t, backend.Limits{Versions: 2, Transaction: 100, KeyOnce: true})
	stream := store.NewWatchStream()
	defer stream.Close()
	if _, err := stream.Watch(server.WatchRequest{Key: []byte("a"), End: []byte("z"), StartRevision: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := tryPut(t.Context(), store, "a", "ours"); err != nil {
		t.Fatal(err)
	}
	db.change(7, backend.Change{Key: []byte("a"), Value: []byte("theirs")}, backend.Change{Key: []byte("b"), Value: []byte("new"), Lease: 5}, backend.Change{Key: []byte("c"), Value: []byte("new")})
	db.change(8, backend.Change{Key: []byte("a"), Deleted: true}, backend.Change{Key: []byte("nothing"), Deleted: true})
	db.change(9, backend.Change{Key: []byte("a"), Value: []byte("again")})
	var seen []string
	for len(seen) < 6 {
		select {
		case answer := <-stream.Chan():
			for _, e := range answer.Events {
				seen = append(seen, fmt.Sprintf("%d %s %s=%s created %d version %d lease %d", e.Kv.ModRevision, e.Type, e.Kv.Key, e.Kv.Value, e.Kv.CreateRevision, e.Kv.Version, e.Kv.Lease))
			}
		case <-t.Context().Done():
			t.Fatalf("seen: %q", seen)
		}
	}
	want := []string{
		"2 PUT a=ours created 2 version 1 lease 0",
		"3 PUT a=theirs created 2 version 2 lease 0",
		"3 PUT b=new created 3 version 1 lease 5",
		"3 PUT c=new created 3 version 1 lease 0",
		"4 DELETE a= created 0 version 0 lease 0",
		"5 PUT a=again created 5 version 1 lease 0",
	}
	if got := strings.Join(seen, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the watch saw\n%s", got)
	}
	marks := map[int64]int64{}
	for _, b := range db.batches {
		for _, v := range b.Versions {
			marks[v.Rev] = v.Mark
		}
	}
	if got := fmt.Sprint(marks); got != "map[2:0 3:7 4:8 5:9]" {
		t.Errorf("revisions and marks are %s", got)
	}
}

func TestABatchKeepsTheLimitsOfItsDatabase(t *testing.T) {
	store, db := newShared(t, backend.Limits{Versions: 3, Transaction: 5, KeyOnce: true})
	release := make(chan struct{})
	entered := make(chan struct{})
	var once sync.Once
	db.set(func() {
		db.before = func(*backend.Batch) error {
			once.Do(func() { close(entered); <-release })
			return nil
		}
	})
	var clients sync.WaitGroup
	put := func(key string) {
		if _, err := tryPut(t.Context(), store, key, "value"); err != nil {
			t.Errorf("put %s: %v", key, err)
		}
	}
	clients.Go(func() { put("first") })
	<-entered
	for i := range 12 {
		clients.Go(func() { put(fmt.Sprintf("key %d", i%4)) })
	}
	close(release)
	clients.Wait()
	large := &pb.TxnRequest{}
	for i := range 5 {
		large.Success = append(large.Success, putOp(fmt.Sprintf("large %d", i), ""))
	}
	if _, err := store.Txn(t.Context(), large); err != nil {
		t.Errorf("a transaction as large as one may be: %v", err)
	}
	large.Success = append(large.Success, putOp("one more", ""))
	if _, err := store.Txn(t.Context(), large); err == nil || !strings.Contains(err.Error(), `"shared" takes at most 5`) {
		t.Errorf("a transaction that is too large: %v", err)
	}
	stored := 0
	for _, b := range db.batches {
		keys := map[string]bool{}
		for _, v := range b.Versions {
			if keys[string(v.Key)] {
				t.Errorf("key %q is twice in a batch", v.Key)
			}
			keys[string(v.Key)] = true
		}
		stored += len(b.Versions)
		if len(b.Versions) > 3 && b.Versions[0].Rev != b.Versions[len(b.Versions)-1].Rev {
			t.Errorf("a batch has %d versions", len(b.Versions))
		}
	}
	if stored != 13+5 {
		t.Errorf("%d versions are stored", stored)
	}
}
