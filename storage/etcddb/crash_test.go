package etcddb_test

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/etcddb"
	"github.com/taskctl-dev/taskctl/test/dbserver"
	"github.com/taskctl-dev/taskctl/test/etcdserver"
)

func opener(endpoints ...string) func(context.Context) (backend.Database, error) {
	return func(ctx context.Context) (backend.Database, error) {
		return etcddb.Open(ctx, etcddb.Config{Endpoints: endpoints, Term: term})
	}
}

func TestServerKilled(t *testing.T) {
	server := etcdserver.Start(t)
	backendtest.RunCrashes(t, server, opener(server.DSN))
}

func TestReadsSurviveRestart(t *testing.T) {
	server := etcdserver.Start(t)
	backendtest.ReadsSurvive(t, server, opener(server.DSN))
}

func TestEngineSurvivesCrashes(t *testing.T) {
	server := etcdserver.Start(t)
	backendtest.RunEngine(t, server, opener(server.DSN))
}

func TestFaults(t *testing.T) {
	backendtest.RunFaults(t, backendtest.Networked{New: func(t *testing.T) backendtest.NetworkedStore {
		endpoint := newEtcd(t)
		address, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		proxy := dbserver.NewProxy(t, address.Host)
		direct := dial(t, endpoint)
		return backendtest.NetworkedStore{
			Proxy: proxy,
			Open: func(ctx context.Context, commitTimeout time.Duration) (backend.Database, error) {
				return etcddb.Open(ctx, etcddb.Config{Endpoints: []string{endpoint}, Term: term, CommitTimeout: commitTimeout, Dial: proxy.Dial})
			},
			LastID: func() int64 {
				found := must[*clientv3.GetResponse](t)(direct.Get(context.Background(), etcddb.ClockKey))
				return must[int64](t)(etcddb.LastID(found.Kvs[0].Value))
			},
		}
	}})
}

// TestAThreeMemberEtcdServesWithAMemberKilled kills each member in turn, the
// leader among them, while clients write.
func TestAThreeMemberEtcdServesWithAMemberKilled(t *testing.T) {
	members := etcdserver.StartCluster(t, 3)
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, m.DSN)
	}
	s := openStore(t, endpoints...)
	ctx, stop := context.WithCancel(t.Context())
	var acknowledged atomic.Int64
	var clients sync.WaitGroup
	highest := make([]int64, 4)
	for c := range highest {
		clients.Go(func() {
			pause := time.NewTicker(5 * time.Millisecond)
			defer pause.Stop()
			for n := int64(1); ctx.Err() == nil; n++ {
				<-pause.C
				if _, err := s.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{put(fmt.Sprintf("/client/%d", c), fmt.Sprint(n))}}); err == nil {
					highest[c] = n
					acknowledged.Add(1)
				}
			}
		})
	}
	reach := func(more int64) {
		t.Helper()
		goal := acknowledged.Load() + more
		eventually(t, fmt.Sprintf("%d more writes are acknowledged", more), func(context.Context) bool { return acknowledged.Load() >= goal })
	}
	reach(100)
	for i, m := range members {
		m.Kill()
		reach(100)
		t.Logf("member %d is dead, the others serve", i)
		m.Start()
	}
	reach(100)
	stop()
	clients.Wait()
	found := s.all()
	for c, kv := range found.Kvs {
		var value int64
		if _, err := fmt.Sscan(string(kv.Value), &value); err != nil || value < highest[c] {
			t.Errorf("%s is %s, and %d was acknowledged", kv.Key, kv.Value, highest[c])
		}
	}
	events := s.watch(2)(int(found.Header.Revision - 1))
	for i, e := range events {
		var revision int
		if _, err := fmt.Sscanf(e, "%d PUT", &revision); err != nil || revision != i+2 {
			t.Fatalf("event %d is %q", i, e)
		}
	}
}
