package mvcc_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
)

// stalled is a database whose writes wait until they are released.
type stalled struct {
	*memoryDB
	entered chan struct{}
	release chan error
}

func newStalled() *stalled {
	s := &stalled{memoryDB: newMemoryDB(), entered: make(chan struct{}, 100), release: make(chan error, 100)}
	s.before = func(*backend.Batch) error {
		s.entered <- struct{}{}
		return <-s.release
	}
	return s
}

type putResult struct {
	rev int64
	err error
}

// begin starts a put on a stalled database and returns once it is pending.
func (s *stalled) begin(t *testing.T, store *mvcc.Store, key, value string) <-chan putResult {
	t.Helper()
	done := make(chan putResult, 1)
	go func() {
		rev, err := tryPut(context.Background(), store, key, value)
		done <- putResult{rev, err}
	}()
	select {
	case <-s.entered:
	case <-time.After(patience):
		t.Fatal("the put never reached the database")
	}
	return done
}

// blocked checks that a read does not come back as long as the database is
// stalled: it is still waiting after other reads were answered.
func blocked(t *testing.T, store *mvcc.Store, r *pb.RangeRequest) <-chan *pb.RangeResponse {
	t.Helper()
	answer := make(chan *pb.RangeResponse, 1)
	go func() {
		response, err := store.Range(context.Background(), r)
		if err != nil {
			t.Errorf("range %q: %v", r.Key, err)
		}
		answer <- response
	}()
	for range 20 {
		read(t, store, get("a0"))
		select {
		case r := <-answer:
			t.Fatalf("answered at %d although a write below is pending", r.Header.Revision)
		case <-time.After(time.Millisecond):
		}
	}
	return answer
}

func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
		panic("unreachable")
	}
}

func TestAPendingWriteHoldsBackOnlyReadersOfItsKeys(t *testing.T) {
	b := newStalled()
	store := newMemory(t, newMemoryDB(), b.memoryDB)
	pending := b.begin(t, store, "b/1", "v") // revision 2
	if rev := put(t, store, "a0", "v"); rev != 3 {
		t.Fatalf("the other backend's write is at %d, want 3", rev)
	}

	if r := read(t, store, get("a0")); r.Header.Revision != 3 || r.Count != 1 {
		t.Errorf("read of the other backend: %v", r)
	}
	if r := read(t, store, get("b/2")); r.Header.Revision != 3 {
		t.Errorf("another key of the stalled backend is read at %d, want 3", r.Header.Revision)
	}
	if r := read(t, store, &pb.RangeRequest{Key: []byte("b/2"), RangeEnd: []byte("b/9")}); r.Header.Revision != 3 {
		t.Errorf("another resource of the stalled backend is read at %d, want 3", r.Header.Revision)
	}
	waiting := []<-chan *pb.RangeResponse{
		blocked(t, store, get("b/1")),
		blocked(t, store, all(0)),
		blocked(t, store, all(2)),
		// The root of the resource, as kube-apiserver asks for "now".
		blocked(t, store, get("b")),
	}
	b.release <- nil
	if r := receive(t, "the put's answer", pending); r.err != nil || r.rev != 2 {
		t.Fatalf("the pending put: %+v, want revision 2", r)
	}
	for i, w := range waiting {
		r := receive(t, "a waiting read", w)
		if r.Header.Revision != 3 {
			t.Errorf("waiting read %d is at %d, want 3", i, r.Header.Revision)
		}
	}
}

func TestAWatchOverTwoBackendsWaitsForTheOlderEvent(t *testing.T) {
	b := newStalled()
	store := newMemory(t, newMemoryDB(), b.memoryDB)
	both := watch(t, store, server.WatchRequest{ID: 1, Key: []byte{0}, End: []byte{0}, StartRevision: 2})
	onlyA := watch(t, store, server.WatchRequest{ID: 2, Key: []byte("a"), End: []byte("b")})
	otherB := watch(t, store, server.WatchRequest{ID: 3, Key: []byte("b/5"), End: []byte("b/6")})
	pending := b.begin(t, store, "b/1", "v") // revision 2
	put(t, store, "a0", "v")                 // revision 3

	if r := next(t, onlyA); len(r.Events) != 1 || r.Events[0].Kv.ModRevision != 3 {
		t.Fatalf("watch of the other backend: %+v", r)
	}
	otherB.RequestProgress(3)
	if r := next(t, otherB); len(r.Events) != 0 || r.Revision != 3 {
		t.Errorf("progress of another resource is %+v, want 3", r)
	}
	both.RequestProgressAll()
	if r := next(t, both); len(r.Events) != 0 || r.Revision != 1 {
		t.Fatalf("progress while revision 2 is pending is %+v, want 1", r)
	}
	b.release <- nil
	receive(t, "the put's answer", pending)
	var revs []int64
	for len(revs) < 2 {
		for _, e := range next(t, both).Events {
			revs = append(revs, e.Kv.ModRevision)
		}
	}
	if len(revs) != 2 || revs[0] != 2 || revs[1] != 3 {
		t.Errorf("events at %v, want [2 3]", revs)
	}
	both.RequestProgressAll()
	if r := next(t, both); len(r.Events) != 0 || r.Revision != 3 {
		t.Errorf("progress is %+v, want 3", r)
	}
}

func TestAFailedBatchGivesItsRevisionsBackIfNoneLaterIsOut(t *testing.T) {
	b := newStalled()
	store := newMemory(t, newMemoryDB(), b.memoryDB)
	both := watch(t, store, server.WatchRequest{ID: 1, Key: []byte{0}, End: []byte{0}, StartRevision: 2})
	refusal := &backend.Rejected{Err: errors.New("the disk is full")}

	pending := b.begin(t, store, "b/1", "v") // revision 2
	b.release <- refusal
	if r := receive(t, "the put's answer", pending); r.err == nil || !strings.Contains(r.err.Error(), "disk is full") {
		t.Fatalf("the refused put: %+v", r)
	}
	if rev := put(t, store, "a0", "v"); rev != 2 {
		t.Fatalf("the next write is at %d, want 2: the failed one's revision is free", rev)
	}

	pending = b.begin(t, store, "b/1", "v") // revision 3
	if rev := put(t, store, "a0", "w"); rev != 4 {
		t.Fatalf("the next write is at %d, want 4", rev)
	}
	b.release <- refusal
	receive(t, "the put's answer", pending)
	if rev := put(t, store, "a0", "x"); rev != 5 {
		t.Fatalf("the write after a gap is at %d, want 5", rev)
	}
	var revs []int64
	for len(revs) < 3 {
		for _, e := range next(t, both).Events {
			revs = append(revs, e.Kv.ModRevision)
		}
	}
	if revs[0] != 2 || revs[1] != 4 || revs[2] != 5 {
		t.Errorf("events at %v, want [2 4 5]", revs)
	}
	if _, err := store.Range(t.Context(), all(6)); !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("a revision that came back: %v, want ErrFutureRev", err)
	}
}

func TestATransactionOverTwoBackendsIsRefusedByName(t *testing.T) {
	store := newMemory(t, newMemoryDB(), newMemoryDB())
	_, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{putOp("a1", "v"), putOp("b1", "v")}})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("error is %v", err)
	}
}

func TestADownBackendIsNamedAtOnceAndHoldsUpNobodyElse(t *testing.T) {
	b := newStalled()
	store := newMemory(t, newMemoryDB(), b.memoryDB)
	pending := b.begin(t, store, "b/1", "v")
	b.set(func() { b.acquire = func() error { return errors.New("connection refused") } })
	b.release <- errors.New("connection lost in COMMIT")

	// At first requests wait: the connection may come back at once.
	eventually(t, "writes are refused", func() bool {
		started := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := tryPut(ctx, store, "b/2", "v")
		return status.Code(err) == codes.FailedPrecondition && strings.Contains(err.Error(), `"b"`) && time.Since(started) < 100*time.Millisecond
	})
	if r := read(t, store, get("b/1")); r.Header.Revision != 1 {
		t.Errorf("while nothing later is known, the store is at 1; the read is at %d", r.Header.Revision)
	}
	if rev := put(t, store, "a0", "v"); rev != 3 {
		t.Errorf("the other backend's write is at %d, want 3", rev)
	}
	for _, r := range []*pb.RangeRequest{get("b/1"), all(0)} {
		if _, err := store.Range(t.Context(), r); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), `"b"`) {
			t.Errorf("read of what is not certain: %v", err)
		}
	}
	if st, _ := store.Status(t.Context()); len(st.Errors) != 1 || !strings.Contains(st.Errors[0], `"b"`) {
		t.Errorf("status tells %q", st.Errors)
	}
	b.set(func() { b.acquire, b.before = nil, nil })
	if r := receive(t, "the put's answer", pending); r.err != nil {
		t.Errorf("the put is not served after the backend came back: %v", r.err)
	}
	eventually(t, "status is good again", func() bool { st, _ := store.Status(t.Context()); return len(st.Errors) == 0 })
	put(t, store, "b/2", "v")
}
