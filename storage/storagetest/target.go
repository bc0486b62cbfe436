package storagetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Target is one side of a comparison: a store that can be started again over
// the data that it left.
type Target struct {
	Name string
	// Start starts it and returns an endpoint for etcd's client and a
	// function that stops it, which may be by force. The endpoint must stay
	// the same over restarts where Restarts is set.
	Start func(tb testing.TB) (endpoint string, stop func())
	// Restarts says that the target is stopped and started at random moments.
	Restarts bool
	// HashKV says that its HashKV is etcd's.
	HashKV bool
}

// side is a running target with a client.
type side struct {
	target Target
	stop   func()
	client *clientv3.Client
	kv     pb.KVClient
	lease  pb.LeaseClient
}

func startSide(tb testing.TB, target Target) *side {
	tb.Helper()
	s := &side{target: target}
	var endpoint string
	endpoint, s.stop = target.Start(tb)
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{endpoint},
		DialTimeout: 10 * time.Second,
		Logger:      zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.WaitForReady(true))},
	})
	if err != nil {
		tb.Fatalf("connect to %s: %v", target.Name, err)
	}
	s.client = client
	s.kv = pb.NewKVClient(client.ActiveConnection())
	s.lease = pb.NewLeaseClient(client.ActiveConnection())
	tb.Cleanup(func() {
		if err := client.Close(); err != nil {
			tb.Errorf("close the client of %s: %v", target.Name, err)
		}
		s.stop()
	})
	return s
}

// restart stops the target and starts it over the same data. The client stays:
// it finds the endpoint again, and its watches go on where they were.
func (s *side) restart(tb testing.TB) {
	tb.Helper()
	s.stop()
	_, s.stop = s.target.Start(tb)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request := &pb.RangeRequest{Key: []byte{0}, CountOnly: true}
	if _, err := s.kv.Range(ctx, request, grpc.WaitForReady(true)); err != nil {
		tb.Fatalf("%s does not answer after its restart: %v", s.target.Name, err)
	}
}

func (s *side) String() string { return fmt.Sprintf("%-8s", s.target.Name) }
