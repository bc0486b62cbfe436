package backendtest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

const (
	engineWriters = 8
	engineCrashes = 3
	engineWrites  = 300 // acknowledged ones between crashes
	engineKeys    = 5   // of each writer
)

// written is a put that was acknowledged.
type written struct {
	key   string
	value int
}

// engineLoad is a store under load, and what it said.
type engineLoad struct {
	*testing.T
	store *mvcc.Store

	acknowledged atomic.Int64
	seen         atomic.Int64    // the newest revision that the watch saw
	events       []*mvccpb.Event // what it saw
	watching     chan struct{}   // closed when it saw upTo
	upTo         chan int64
	mu           sync.Mutex
	byRevision   map[int64]written
	highest      map[string]int // acknowledged value of each key
}

// RunEngine runs the storage engine on a server that is killed and restarted
// while clients write, watch and compact, and checks that nothing acknowledged
// is lost, that revisions have no gap and that the watch saw each write once
// and in order.
func RunEngine(t *testing.T, victim *dbserver.Server, open func(context.Context) (backend.Database, error)) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*timeout)
	defer cancel()
	database, err := open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	store, err := mvcc.Open(ctx, mvcc.Options{Backends: []mvcc.Backend{{Name: "victim", Database: database}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	}()
	l := &engineLoad{T: t, store: store, byRevision: map[int64]written{}, highest: map[string]int{}, watching: make(chan struct{}), upTo: make(chan int64, 1)}
	stream := store.NewWatchStream()
	defer stream.Close()
	if _, err := stream.Watch(server.WatchRequest{ID: 1, Key: []byte("/"), End: []byte("0"), StartRevision: 2}); err != nil {
		t.Fatal(err)
	}
	go l.watch(ctx, stream)
	load, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	for w := range engineWriters {
		clients.Go(func() { l.write(load, w) })
	}
	clients.Go(func() { l.compact(load) })
	for crash := range engineCrashes {
		l.reach(int64(crash*2+1) * engineWrites)
		victim.Kill()
		victim.Start()
		l.reach(int64(crash*2+2) * engineWrites)
	}
	stop()
	clients.Wait()
	l.check(ctx)
}

// reach waits for a number of acknowledged writes.
func (l *engineLoad) reach(count int64) {
	l.Helper()
	if !dbserver.Eventually(2*timeout, func() bool { return l.acknowledged.Load() >= count }) {
		l.Fatalf("writes do not go on: %d of %d were acknowledged", l.acknowledged.Load(), count)
	}
}

// write puts rising numbers under keys of its own.
func (l *engineLoad) write(ctx context.Context, writer int) {
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for value := 1; ctx.Err() == nil; value++ {
		key := fmt.Sprintf("/writer/%d/%d", writer, value%engineKeys)
		answer, err := l.store.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: []byte(key), Value: strconv.AppendInt(nil, int64(value), 10)},
		}}}})
		if err != nil {
			<-pause.C // the outcome is unknown, or the database is down
			continue
		}
		l.mu.Lock()
		if before, twice := l.byRevision[answer.Header.Revision]; twice {
			l.Errorf("revision %d was given to %v and to %s=%d", answer.Header.Revision, before, key, value)
		}
		l.byRevision[answer.Header.Revision] = written{key, value}
		l.highest[key] = value
		l.mu.Unlock()
		l.acknowledged.Add(1)
	}
}

// compact compacts behind the watch.
func (l *engineLoad) compact(ctx context.Context) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if seen := l.seen.Load(); seen > 200 {
			_, _ = l.store.Compact(ctx, &pb.CompactionRequest{Revision: seen - 200}) // if it fails, the next one will do
		}
	}
}

// watch collects events until it has seen the revision that is sent on upTo.
func (l *engineLoad) watch(ctx context.Context, stream server.WatchStream) {
	defer close(l.watching)
	upTo := int64(1 << 62)
	for l.seen.Load() < upTo {
		select {
		case upTo = <-l.upTo:
		case answer := <-stream.Chan():
			if answer.CompactRevision != 0 {
				l.Errorf("the watch was compacted away at %d", answer.CompactRevision)
				return
			}
			l.events = append(l.events, answer.Events...)
			if len(l.events) > 0 {
				l.seen.Store(l.events[len(l.events)-1].Kv.ModRevision)
			}
		case <-ctx.Done():
			l.Errorf("the watch stands at revision %d of %d", l.seen.Load(), upTo)
			return
		}
	}
}

// check compares what the watch saw and what is stored with what was
// acknowledged.
func (l *engineLoad) check(ctx context.Context) {
	l.Helper()
	var all *pb.RangeResponse
	var err error
	if !dbserver.Eventually(timeout, func() bool {
		all, err = l.store.Range(ctx, &pb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0")})
		return err == nil
	}) {
		l.Fatalf("read everything: %v", err)
	}
	l.upTo <- all.Header.Revision
	<-l.watching
	last := l.watched()
	for key, value := range l.highest {
		if last[key] < value {
			l.Errorf("%s=%d was acknowledged; the watch's last value is %d", key, value, last[key])
		}
	}
	if len(all.Kvs) != len(last) {
		l.Errorf("%d keys are stored, the watch saw %d", len(all.Kvs), len(last))
	}
	for _, kv := range all.Kvs {
		if value := number(kv); value != last[string(kv.Key)] {
			l.Errorf("%s is %d, the watch's last value is %d", kv.Key, value, last[string(kv.Key)])
		}
	}
}

// watched checks the events and returns the last value of each key.
func (l *engineLoad) watched() map[string]int {
	l.Helper()
	last := map[string]int{}
	for i, e := range l.events {
		revision := int64(i) + 2
		if e.Kv.ModRevision != revision {
			l.Fatalf("the watch saw revision %d where %d comes next", e.Kv.ModRevision, revision)
		}
		value := number(e.Kv)
		if w, known := l.byRevision[revision]; known && w != (written{string(e.Kv.Key), value}) {
			l.Errorf("revision %d was acknowledged as %v, the watch saw %s=%d", revision, w, e.Kv.Key, value)
		}
		delete(l.byRevision, revision)
		last[string(e.Kv.Key)] = value
	}
	for revision, w := range l.byRevision {
		l.Errorf("revision %d (%v) was acknowledged and not seen", revision, w)
	}
	return last
}

func number(kv *mvccpb.KeyValue) int {
	n, err := strconv.Atoi(string(kv.Value))
	if err != nil {
		return -1
	}
	return n
}
