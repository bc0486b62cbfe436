package server_test

import (
	"context"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/taskctl-dev/taskctl/storage/server"
)

// scriptedStore is a Store whose watches say what a test makes them say.
type scriptedStore struct {
	server.Store
	streams chan *scriptedStream
}

func (s *scriptedStore) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{}}, nil
}

func (s *scriptedStore) NewWatchStream() server.WatchStream {
	stream := &scriptedStream{
		answers: make(chan server.WatchResponse, 100), watched: make(chan server.WatchRequest, 10),
		cancelled: make(chan int64, 10), progress: make(chan int64, 10),
	}
	s.streams <- stream
	return stream
}

type scriptedStream struct {
	answers   chan server.WatchResponse
	watched   chan server.WatchRequest
	cancelled chan int64
	progress  chan int64
	closeOnce sync.Once
}

func (s *scriptedStream) Watch(r server.WatchRequest) (int64, error) {
	// Events that happen before the client was told that the watch exists.
	s.answers <- event(r.ID, 1)
	s.watched <- r
	return r.ID, nil
}
func (s *scriptedStream) Cancel(id int64) error             { s.cancelled <- id; return nil }
func (s *scriptedStream) Chan() <-chan server.WatchResponse { return s.answers }
func (s *scriptedStream) RequestProgress(id int64)          { s.progress <- id }
func (s *scriptedStream) RequestProgressAll()               { s.progress <- 0 }
func (s *scriptedStream) Revision() int64                   { return 7 }
func (s *scriptedStream) Close()                            { s.closeOnce.Do(func() { close(s.answers) }) }

func event(id, revision int64) server.WatchResponse {
	return server.WatchResponse{WatchID: id, Revision: revision, Events: []*mvccpb.Event{
		{Kv: &mvccpb.KeyValue{Key: []byte("k"), Value: make([]byte, 1<<20), ModRevision: revision}},
		{Kv: &mvccpb.KeyValue{Key: []byte("l"), Value: make([]byte, 1<<20), ModRevision: revision}},
		{Kv: &mvccpb.KeyValue{Key: []byte("m"), Value: make([]byte, 1<<20), ModRevision: revision}},
	}}
}

// watchClient is a raw watch stream to a scripted store.
type watchClient struct {
	t      *testing.T
	client pb.Watch_WatchClient
	store  *scriptedStream
}

func newWatchClient(t *testing.T, options server.Options) *watchClient {
	t.Helper()
	store := &scriptedStore{streams: make(chan *scriptedStream, 1)}
	address, stop := serveStore(t, store, options, "http://127.0.0.1:0", server.TLSFiles{})
	t.Cleanup(stop)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	client, err := pb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &watchClient{t: t, client: client, store: <-store.streams}
}

func (c *watchClient) create(r *pb.WatchCreateRequest) {
	c.t.Helper()
	c.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}})
}

func (c *watchClient) cancel(id int64) {
	c.t.Helper()
	c.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
}

func (c *watchClient) send(r *pb.WatchRequest) {
	c.t.Helper()
	if err := c.client.Send(r); err != nil {
		c.t.Fatal(err)
	}
}

func (c *watchClient) receive() *pb.WatchResponse {
	c.t.Helper()
	r, err := c.client.Recv()
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// expectCreated receives "created" and the early event after it.
func (c *watchClient) expectCreated(id int64) server.WatchRequest {
	c.t.Helper()
	if r := c.receive(); !r.Created || r.Canceled || r.WatchId != id || r.Header.Revision != 7 {
		c.t.Fatalf("want created of %d, got %v", id, r)
	}
	if r := c.receive(); len(r.Events) == 0 || r.WatchId != id {
		c.t.Fatalf("want the early event of %d, got watch %d with %d events", id, r.WatchId, len(r.Events))
	}
	return <-c.store.watched
}

func TestCreatedComesBeforeEventsAndIDsAreTheClients(t *testing.T) {
	c := newWatchClient(t, server.Options{})
	c.create(&pb.WatchCreateRequest{Key: []byte("a")})
	c.expectCreated(0)
	c.create(&pb.WatchCreateRequest{Key: []byte("b"), WatchId: 1})
	c.expectCreated(1)
	c.create(&pb.WatchCreateRequest{Key: []byte("c")}) // 1 is taken
	c.expectCreated(2)
	c.create(&pb.WatchCreateRequest{Key: []byte("d"), WatchId: 1})
	if r := c.receive(); !r.Created || !r.Canceled || r.WatchId != -1 ||
		r.CancelReason != "mvcc: duplicate watch ID provided on the WatchStream" {
		t.Errorf("a duplicate id was answered with %v", r)
	}
}

func TestTheEmptyKeyIsTheSmallestOne(t *testing.T) {
	c := newWatchClient(t, server.Options{})
	c.create(&pb.WatchCreateRequest{RangeEnd: []byte{0}, PrevKv: true, Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT}})
	r := c.expectCreated(0)
	if string(r.Key) != "\x00" || string(r.End) != "\x00" || !r.PrevKV || !r.NoPut || r.NoDelete {
		t.Errorf("the store was asked for %+v", r)
	}
}

func TestNothingFollowsCanceledThoughTheIDIsUsedAgain(t *testing.T) {
	c := newWatchClient(t, server.Options{})
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), WatchId: 5})
	old := c.expectCreated(5)
	c.cancel(5)
	if id := <-c.store.cancelled; id != old.ID {
		t.Fatalf("watch %d was cancelled, want %d", id, old.ID)
	}
	c.store.answers <- event(old.ID, 50) // was on its way already
	if r := c.receive(); r.Events != nil && r.Header.Revision == 50 {
		// It was sent before the cancel was, which is right; canceled follows.
		if r = c.receive(); !r.Canceled {
			t.Fatalf("want canceled, got %v", r)
		}
	}
	c.create(&pb.WatchCreateRequest{Key: []byte("b"), WatchId: 5})
	renewed := c.expectCreated(5)
	c.store.answers <- event(old.ID, 51)
	c.store.answers <- event(renewed.ID, 52)
	if r := c.receive(); r.Header.Revision != 52 {
		t.Errorf("the new watch was told an event of the old one: revision %d", r.Header.Revision)
	}
}

func TestACompactedWatchIsCancelledAndItsIDFree(t *testing.T) {
	c := newWatchClient(t, server.Options{})
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), WatchId: 5})
	w := c.expectCreated(5)
	c.store.answers <- server.WatchResponse{WatchID: w.ID, Revision: 9, CompactRevision: 8}
	if r := c.receive(); !r.Canceled || r.CompactRevision != 8 || r.WatchId != 5 {
		t.Fatalf("want canceled by compaction, got %v", r)
	}
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), WatchId: 5})
	c.expectCreated(5)
}

func TestFragmentsAreSmallAndNothingComesBetween(t *testing.T) {
	c := newWatchClient(t, server.Options{})
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), Fragment: true})
	keys := ""
	if r := c.receive(); !r.Created {
		t.Fatalf("want created, got %v", r)
	}
	for {
		r := c.receive()
		for _, e := range r.Events {
			keys += string(e.Kv.Key)
		}
		if len(r.Events) != 1 {
			t.Errorf("a fragment has %d events of 1 MiB each", len(r.Events))
		}
		if !r.Fragment {
			break
		}
	}
	if keys != "klm" {
		t.Errorf("the fragments had the events %q, want klm", keys)
	}
}

func TestProgressIsToldPeriodicallyToQuietWatchesThatAskedForIt(t *testing.T) {
	c := newWatchClient(t, server.Options{ProgressNotifyInterval: 100 * time.Millisecond})
	c.create(&pb.WatchCreateRequest{Key: []byte("a")})
	c.expectCreated(0)
	c.create(&pb.WatchCreateRequest{Key: []byte("b"), ProgressNotify: true})
	asking := c.expectCreated(1)
	for range 3 {
		if id := <-c.store.progress; id != asking.ID {
			t.Fatalf("progress of %d was asked for, want %d", id, asking.ID)
		}
	}
	c.store.answers <- server.WatchResponse{WatchID: asking.ID, Revision: 60}
	if r := c.receive(); r.WatchId != 1 || len(r.Events) != 0 || r.Header.Revision != 60 {
		t.Errorf("want progress at 60, got %v", r)
	}
}

func TestAProgressRequestGoesToTheStore(t *testing.T) {
	c := newWatchClient(t, server.Options{})
	c.create(&pb.WatchCreateRequest{Key: []byte("a")})
	c.expectCreated(0)
	c.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
	if id := <-c.store.progress; id != 0 {
		t.Errorf("progress of watch %d alone was asked for", id)
	}
}

func TestWatchesThatCantBeMadeAreAnsweredAsEtcdDoes(t *testing.T) {
	tests := map[string]*pb.WatchCreateRequest{
		"mvcc: watcher range is empty":                           {Key: []byte("b"), RangeEnd: []byte("a")},
		"etcdserver: mvcc: required revision has been compacted": {Key: []byte("b"), StartRevision: -1},
	}
	for reason, request := range tests {
		t.Run(reason, func(t *testing.T) {
			c := newWatchClient(t, server.Options{})
			c.create(request)
			if r := c.receive(); !r.Created || !r.Canceled || r.WatchId != -1 || r.CancelReason != reason {
				t.Errorf("answered with %v", r)
			}
		})
	}
}
