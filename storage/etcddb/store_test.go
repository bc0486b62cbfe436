package etcddb_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/taskctl-dev/taskctl/storage/etcddb"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
)

// store is the engine over one etcd.
type store struct {
	*testing.T
	*mvcc.Store
}

func openStore(t *testing.T, endpoints ...string) *store {
	t.Helper()
	database, err := etcddb.Open(t.Context(), etcddb.Config{Endpoints: endpoints, Term: term})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := mvcc.Open(t.Context(), mvcc.Options{Backends: []mvcc.Backend{{Name: "etcd", Database: database}}})
	if err != nil {
		t.Fatal(err)
	}
	s := &store{t, opened}
	t.Cleanup(s.stop)
	return s
}

func (s *store) stop() {
	if s.Store == nil {
		return
	}
	if err := s.Close(); err != nil {
		s.Errorf("close the store: %v", err)
	}
	s.Store = nil
}

func put(key, value string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value)}}}
}

func remove(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}}
}

// do runs operations as one transaction and returns its revision.
func (s *store) do(operations ...*pb.RequestOp) int64 {
	s.Helper()
	answer, err := s.Txn(s.Context(), &pb.TxnRequest{Success: operations})
	if err != nil {
		s.Fatal(err)
	}
	return answer.Header.Revision
}

// all reads every key.
func (s *store) all() *pb.RangeResponse {
	s.Helper()
	answer, err := s.Range(s.Context(), &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		s.Fatal(err)
	}
	return answer
}

// watch sends the events from a revision on as lines of text.
func (s *store) watch(from int64) func(count int) []string {
	s.Helper()
	stream := s.NewWatchStream()
	s.Cleanup(stream.Close)
	if _, err := stream.Watch(server.WatchRequest{Key: []byte{0}, End: []byte{0}, StartRevision: from}); err != nil {
		s.Fatal(err)
	}
	var rest []string
	return func(count int) []string {
		s.Helper()
		limit := time.After(time.Minute)
		for len(rest) < count {
			select {
			case answer := <-stream.Chan():
				if answer.CompactRevision != 0 {
					s.Fatalf("the watch was compacted away at %d", answer.CompactRevision)
				}
				for _, e := range answer.Events {
					rest = append(rest, fmt.Sprintf("%d %s %s", e.Kv.ModRevision, e.Type, line(e.Kv)))
				}
			case <-limit:
				s.Fatalf("%d of %d events came: %q", len(rest), count, rest)
			}
		}
		events := rest[:count]
		rest = rest[count:]
		return events
	}
}

func line(kv *mvccpb.KeyValue) string {
	return fmt.Sprintf("%s=%s create %d version %d lease %d", kv.Key, kv.Value, kv.CreateRevision, kv.Version, kv.Lease)
}

func lines(kvs []*mvccpb.KeyValue) []string {
	var all []string
	for _, kv := range kvs {
		all = append(all, fmt.Sprintf("%d %s", kv.ModRevision, line(kv)))
	}
	return all
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if g, w := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want); g != w {
		t.Errorf("%s is\n%s\nnot\n%s", what, g, w)
	}
}

// dial connects to an etcd directly.
func dial(t *testing.T, endpoints ...string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// must is the result of a call that cannot fail.
func must[R any](t *testing.T) func(R, error) R {
	return func(result R, err error) R {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !condition(ctx) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("it never came that %s", what)
		}
	}
}
