package server_test

import (
	"context"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/taskctl-dev/taskctl/storage/server"
)

// etcdStore is a Store in front of a real etcd. With it the services alone
// are compared with etcd: the store behind both is the same.
type etcdStore struct {
	client *clientv3.Client
	kv     pb.KVClient
	lease  pb.LeaseClient
	maint  pb.MaintenanceClient
}

func newEtcdStore(tb testing.TB, endpoint string) *etcdStore {
	tb.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	conn := client.ActiveConnection()
	return &etcdStore{client, pb.NewKVClient(conn), pb.NewLeaseClient(conn), pb.NewMaintenanceClient(conn)}
}

func (s *etcdStore) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	return s.kv.Range(ctx, r)
}

func (s *etcdStore) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	return s.kv.Txn(ctx, r)
}

func (s *etcdStore) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	return s.kv.Compact(ctx, r)
}

func (s *etcdStore) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	return s.lease.LeaseGrant(ctx, r)
}

func (s *etcdStore) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	return s.lease.LeaseRevoke(ctx, r)
}

func (s *etcdStore) LeaseKeepAlive(ctx context.Context, r *pb.LeaseKeepAliveRequest) (*pb.LeaseKeepAliveResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.lease.LeaseKeepAlive(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(r); err != nil {
		return nil, err
	}
	return stream.Recv()
}

func (s *etcdStore) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	return s.lease.LeaseTimeToLive(ctx, r)
}

func (s *etcdStore) LeaseLeases(ctx context.Context, r *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	return s.lease.LeaseLeases(ctx, r)
}

func (s *etcdStore) Status(ctx context.Context) (server.Status, error) {
	r, err := s.maint.Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return server.Status{}, err
	}
	return server.Status{Revision: r.Header.Revision, Size: r.DbSize, SizeInUse: r.DbSizeInUse, Errors: r.Errors}, nil
}

func (s *etcdStore) Defragment(ctx context.Context) error {
	_, err := s.maint.Defragment(ctx, &pb.DefragmentRequest{})
	return err
}

func (s *etcdStore) HashKV(ctx context.Context, revision int64) (uint32, int64, int64, error) {
	r, err := s.maint.HashKV(ctx, &pb.HashKVRequest{Revision: revision})
	if err != nil {
		return 0, 0, 0, err
	}
	return r.Hash, r.HashRevision, r.CompactRevision, nil
}

func (s *etcdStore) NewWatchStream() server.WatchStream {
	ctx, cancel := context.WithCancel(context.Background())
	return &etcdWatches{
		store: s, ctx: ctx, cancel: cancel,
		answers: make(chan server.WatchResponse, 16),
		streams: make(map[int64]pb.Watch_WatchClient),
	}
}

// etcdWatches gives each watch a stream of its own, so that progress is
// answered for each.
type etcdWatches struct {
	store   *etcdStore
	ctx     context.Context
	cancel  context.CancelFunc
	answers chan server.WatchResponse
	readers sync.WaitGroup

	mu      sync.Mutex
	streams map[int64]pb.Watch_WatchClient
}

func (w *etcdWatches) Watch(r server.WatchRequest) (int64, error) {
	stream, err := pb.NewWatchClient(w.store.client.ActiveConnection()).Watch(w.ctx)
	if err != nil {
		return 0, err
	}
	create := &pb.WatchCreateRequest{Key: r.Key, RangeEnd: r.End, StartRevision: r.StartRevision, PrevKv: r.PrevKV}
	if r.NoPut {
		create.Filters = append(create.Filters, pb.WatchCreateRequest_NOPUT)
	}
	if r.NoDelete {
		create.Filters = append(create.Filters, pb.WatchCreateRequest_NODELETE)
	}
	if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
		return 0, err
	}
	if _, err := stream.Recv(); err != nil { // created
		return 0, err
	}
	w.mu.Lock()
	w.streams[r.ID] = stream
	w.mu.Unlock()
	w.readers.Go(func() { w.read(r.ID, stream) })
	return r.ID, nil
}

func (w *etcdWatches) read(id int64, stream pb.Watch_WatchClient) {
	for {
		r, err := stream.Recv()
		if err != nil {
			return
		}
		answer := server.WatchResponse{
			WatchID: id, Events: r.Events, Revision: r.Header.Revision, CompactRevision: r.CompactRevision,
		}
		w.mu.Lock()
		_, open := w.streams[id]
		w.mu.Unlock()
		if !open {
			return
		}
		select {
		case w.answers <- answer:
		case <-w.ctx.Done():
			return
		}
	}
}

func (w *etcdWatches) Cancel(id int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stream, open := w.streams[id]; open {
		delete(w.streams, id)
		return stream.CloseSend()
	}
	return nil
}

func (w *etcdWatches) RequestProgress(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stream, open := w.streams[id]; open {
		_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{
			ProgressRequest: &pb.WatchProgressRequest{},
		}})
	}
}

func (w *etcdWatches) RequestProgressAll() {
	w.mu.Lock()
	ids := make([]int64, 0, len(w.streams))
	for id := range w.streams {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	for _, id := range ids {
		w.RequestProgress(id)
	}
}

func (w *etcdWatches) Chan() <-chan server.WatchResponse { return w.answers }

func (w *etcdWatches) Revision() int64 {
	s, err := w.store.Status(w.ctx)
	if err != nil {
		return 0
	}
	return s.Revision
}

func (w *etcdWatches) Close() {
	w.cancel()
	w.readers.Wait()
	close(w.answers)
}
