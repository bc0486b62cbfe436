package mvcc_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
)

// tinyRing makes watches that are only a little late read the database.
func tinyRing(o *mvcc.Options) { o.RingEvents, o.CacheBytes = 20, 64<<10 }

// wanted is an event that a watch must bring.
type wanted struct {
	rev     int64
	deleted bool
	value   string
	prev    string // "" if it has none
}

func (w wanted) String() string {
	return fmt.Sprintf("{%d deleted=%t %q before %q}", w.rev, w.deleted, w.value, w.prev)
}

func wantedOf(e *mvccpb.Event) wanted {
	return wanted{rev: e.Kv.ModRevision, deleted: e.Type == mvccpb.DELETE, value: string(e.Kv.Value), prev: string(e.PrevKv.GetValue())}
}

// history is what clients were told about their writes, by revision.
type history struct {
	mu     sync.Mutex
	events map[int64]wanted
}

// TestEveryWatchSeesExactlyWhatWasWritten runs writers, and watchers that start
// at random revisions, read slowly and stop and resume, over a ring that is far
// too small.
func TestEveryWatchSeesExactlyWhatWasWritten(t *testing.T) {
	store := newFile(t, tinyRing)
	const writers, writes, watchers = 8, 250, 12
	h := &history{events: map[int64]wanted{}}
	var last atomic.Int64
	var group, watching sync.WaitGroup
	for writer := range writers {
		group.Go(func() { writeHistory(t, store, h, &last, fmt.Sprintf("k/%d", writer), writes) })
	}
	done := make(chan struct{})
	seen := make([]map[int64]wanted, watchers)
	for i := range watchers {
		seen[i] = map[int64]wanted{}
		watching.Go(func() { followHistory(t, store, i, seen[i], done, &last) })
	}
	group.Wait()
	close(done)
	watching.Wait()
	for i, events := range seen {
		if len(events) != len(h.events) {
			t.Errorf("watcher %d saw %d events of %d", i, len(events), len(h.events))
		}
		for rev, want := range h.events {
			if got := events[rev]; got != want {
				t.Fatalf("watcher %d saw %v, want %v", i, got, want)
			}
		}
	}
}

// writeHistory changes a key that nobody else changes and notes what it did.
func writeHistory(t *testing.T, store *mvcc.Store, h *history, last *atomic.Int64, key string, writes int) {
	value := ""
	for i := range writes {
		if i%10 == 9 {
			rev, _ := remove(t, store, key, "")
			h.note(wanted{rev: rev, deleted: true, prev: value}, last)
			value = ""
			continue
		}
		now := fmt.Sprintf("%s=%d", key, i)
		h.note(wanted{rev: put(t, store, key, now), value: now, prev: value}, last)
		value = now
	}
}

func (h *history) note(e wanted, last *atomic.Int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events[e.rev] = e
	if e.rev > last.Load() {
		last.Store(e.rev)
	}
}

// followHistory watches from the beginning, by several watches one after the
// other, each resuming where the one before stopped.
func followHistory(t *testing.T, store *mvcc.Store, number int, seen map[int64]wanted, done <-chan struct{}, last *atomic.Int64) {
	random := rand.New(rand.NewPCG(7, uint64(number)))
	from := int64(2)
	finished := func() bool {
		select {
		case <-done:
			return from > last.Load()
		default:
			return false
		}
	}
	for !finished() {
		ws := store.NewWatchStream()
		id, err := ws.Watch(server.WatchRequest{ID: int64(number + 1), Key: []byte("k/"), End: []byte("k0"), StartRevision: from, PrevKV: true})
		if err != nil {
			t.Error(err)
		}
		for range 1 + random.IntN(40) {
			if finished() {
				break
			}
			ws.RequestProgress(id)
			r := receive(t, "an answer of the watch", ws.Chan())
			for _, e := range r.Events {
				if e.Kv.ModRevision < from {
					t.Errorf("watcher %d saw revision %d again or out of order, after %d", number, e.Kv.ModRevision, from)
				}
				from = e.Kv.ModRevision + 1
				seen[e.Kv.ModRevision] = wantedOf(e)
			}
			if r.Revision < from-1 {
				t.Errorf("watcher %d is told revision %d with events up to %d", number, r.Revision, from-1)
			}
			from = r.Revision + 1
			if random.IntN(4) == 0 {
				<-time.After(time.Duration(random.IntN(3)) * time.Millisecond)
			}
		}
		ws.Close()
	}
}

func TestAWatchFromTheFloorSeesItsDeletesWithoutPreviousValues(t *testing.T) {
	store := newFile(t, tinyRing)
	put(t, store, "k1", "old") // 2
	put(t, store, "k2", "old") // 3
	remove(t, store, "k", "l") // 4
	put(t, store, "k1", "new") // 5
	put(t, store, "k1", "newer")
	for i := range 50 {
		put(t, store, "other", fmt.Sprint(i)) // pushes all of it out of the ring
	}
	for _, physical := range []bool{false, true} {
		floor := int64(4)
		if physical {
			floor = 5
		}
		compact(t, store, floor, physical)
		tooOld := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("k"), End: []byte("l"), StartRevision: floor - 1, PrevKV: true})
		if r := next(t, tooOld); r.CompactRevision != floor {
			t.Errorf("a watch below the floor is told %+v, want compaction at %d", r, floor)
		}
		ws := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("k"), End: []byte("l"), StartRevision: floor, PrevKV: true})
		var got []wanted
		for len(got) == 0 || got[len(got)-1].rev < 6 {
			for _, e := range next(t, ws).Events {
				got = append(got, wantedOf(e))
			}
		}
		want := []wanted{{rev: 4, deleted: true}, {rev: 4, deleted: true}, {rev: 5, value: "new"}, {rev: 6, value: "newer", prev: "new"}}
		if physical {
			want = want[2:]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after compaction at %d: %v, want %v", floor, got, want)
		}
	}
}

func TestAWatchKeepsItsFilters(t *testing.T) {
	store := newFile(t)
	ws := store.NewWatchStream()
	t.Cleanup(ws.Close)
	for id, r := range []server.WatchRequest{{NoPut: true}, {NoDelete: true}} {
		r.ID, r.Key, r.StartRevision = int64(id+1), []byte("k"), 2
		if _, err := ws.Watch(r); err != nil {
			t.Fatal(err)
		}
	}
	put(t, store, "k", "v")
	remove(t, store, "k", "")
	types := map[int64][]mvccpb.Event_EventType{}
	for len(types[1])+len(types[2]) < 2 {
		r := next(t, ws)
		for _, e := range r.Events {
			types[r.WatchID] = append(types[r.WatchID], e.Type)
		}
	}
	if fmt.Sprint(types) != "map[1:[DELETE] 2:[PUT]]" {
		t.Errorf("events are %v", types)
	}
}

func TestNothingIsSentAfterCancelAndEveryStreamEnds(t *testing.T) {
	store := newFile(t, tinyRing)
	for i := range 500 {
		put(t, store, "k", fmt.Sprint(i))
	}
	ws := store.NewWatchStream()
	id, err := ws.Watch(server.WatchRequest{ID: 5, Key: []byte("k"), StartRevision: 2})
	if err != nil {
		t.Fatal(err)
	}
	next(t, ws)
	if err := ws.Cancel(id); err != nil {
		t.Fatal(err)
	}
	if err := ws.Cancel(id); err == nil {
		t.Error("a second cancel succeeds")
	}
	buffered := len(ws.Chan())
	put(t, store, "k", "after")
	for range buffered {
		next(t, ws)
	}
	select {
	case r := <-ws.Chan():
		t.Errorf("sent after cancel: %+v", r)
	default:
	}
	ws.Close()
	if _, open := <-ws.Chan(); open {
		t.Error("the channel is open after Close")
	}
}

// TestASlowStreamHoldsUpNobody fills a stream that nobody reads.
func TestASlowStreamHoldsUpNobody(t *testing.T) {
	store := newFile(t, tinyRing)
	slow := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("k"), End: []byte("l"), PrevKV: true})
	quick := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("k"), End: []byte("l"), PrevKV: true})
	const writes = 1000
	events := 0
	for i := range writes {
		put(t, store, fmt.Sprintf("k%d", i%7), "v")
		events += len(next(t, quick).Events)
	}
	if events != writes {
		t.Errorf("the quick stream saw %d events, want %d", events, writes)
	}
	from := int64(2)
	for from <= writes+1 {
		for _, e := range next(t, slow).Events {
			if e.Kv.ModRevision != from {
				t.Fatalf("the slow stream saw %d, want %d", e.Kv.ModRevision, from)
			}
			from++
		}
	}
}

func TestAKeyChangedTwiceInATransactionHasBothEvents(t *testing.T) {
	store := newFile(t)
	put(t, store, "k", "before")
	ws := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("k"), PrevKV: true})
	_, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{putOp("k", "during"), deleteOp("k", "")}})
	if err != nil {
		t.Fatal(err)
	}
	var got []wanted
	for _, e := range next(t, ws).Events {
		got = append(got, wantedOf(e))
	}
	want := []wanted{{rev: 3, value: "during", prev: "before"}, {rev: 3, deleted: true, prev: "before"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("events are %v, want %v", got, want)
	}
	if r := read(t, store, all(3)); r.Count != 0 {
		t.Errorf("the key is there: %v", r)
	}
	if r := read(t, store, all(2)); r.Count != 1 || string(r.Kvs[0].Value) != "before" {
		t.Errorf("before it is %v", r)
	}
}
