package etcddb_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestAdoptionWritesNothingAndKeepsEtcdsNumbers(t *testing.T) {
	endpoint := newEtcd(t)
	etcd := dial(t, endpoint)
	for i := range 3 {
		must[*clientv3.PutResponse](t)(etcd.Put(t.Context(), "/a", strconv.Itoa(i)))
	}
	must[*clientv3.TxnResponse](t)(etcd.Txn(t.Context()).Then(clientv3.OpPut("/b", "\x00\xff"), clientv3.OpPut("/c", "")).Commit())
	must[*clientv3.DeleteResponse](t)(etcd.Delete(t.Context(), "/c"))
	before := must[*clientv3.GetResponse](t)(etcd.Get(t.Context(), "\x00", clientv3.WithFromKey()))
	adopted := before.Header.Revision

	s := openStore(t, endpoint)
	shown := s.all()
	same(t, "what is shown", lines(shown.Kvs), lines(before.Kvs))
	if shown.Header.Revision != adopted {
		t.Errorf("the store is at revision %d, the etcd was at %d", shown.Header.Revision, adopted)
	}
	if _, err := s.Range(t.Context(), &pb.RangeRequest{Key: []byte("/a"), Revision: adopted - 1}); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a revision before the adoption: %v", err)
	}
	after := must[*clientv3.GetResponse](t)(etcd.Get(t.Context(), "\x00", clientv3.WithFromKey()))
	if after.Header.Revision != adopted || after.Count != before.Count {
		t.Errorf("adoption moved the etcd from revision %d with %d keys to %d with %d", adopted, before.Count, after.Header.Revision, after.Count)
	}
	s.stop()

	// Again without a write, then with one: the other keys stay as they are.
	s = openStore(t, endpoint)
	if rev := s.do(put("/b", "\xff\x00")); rev != adopted+1 {
		t.Errorf("the first write got revision %d, not %d", rev, adopted+1)
	}
	direct := must[*clientv3.GetResponse](t)(etcd.Get(t.Context(), "/", clientv3.WithPrefix()))
	if len(direct.Kvs) != 2 || string(direct.Kvs[1].Value) != "\xff\x00" {
		t.Errorf("the etcd itself shows %v", direct.Kvs)
	}
	want := lines(s.all().Kvs)
	if want[0] != lines(before.Kvs)[0] || len(want) != 2 {
		t.Errorf("the store shows %q", want)
	}
	s.stop()
	s = openStore(t, endpoint)
	same(t, "what is shown after a restart", lines(s.all().Kvs), want)
	same(t, "a watch over the restart", s.watch(adopted+1)(1), []string{fmt.Sprintf("%d PUT /b=\xff\x00 create %d version 2 lease 0", adopted+1, before.Kvs[1].CreateRevision)})
}

func TestWhatOthersWriteGetsRevisionsOfTheStores(t *testing.T) {
	endpoint := newEtcd(t)
	etcd := dial(t, endpoint)
	must[*clientv3.PutResponse](t)(etcd.Put(t.Context(), "/old", "1"))
	must[*clientv3.PutResponse](t)(etcd.Put(t.Context(), "/gone", "1"))
	s := openStore(t, endpoint) // at revision 3
	next := s.watch(4)
	var want []string
	expect := func(events ...string) {
		t.Helper()
		want = append(want, events...)
		same(t, "the watch's next events", next(len(events)), events)
	}
	s.do(put("/ours", "1"))
	expect("4 PUT /ours=1 create 4 version 1 lease 0")
	must[*clientv3.PutResponse](t)(etcd.Put(t.Context(), "/ours", "theirs"))
	expect("5 PUT /ours=theirs create 4 version 2 lease 0")
	must[*clientv3.TxnResponse](t)(etcd.Txn(t.Context()).Then(clientv3.OpPut("/old", "2"), clientv3.OpPut("/new", "1"), clientv3.OpDelete("/gone")).Commit())
	expect("6 PUT /old=2 create 2 version 2 lease 0", "6 PUT /new=1 create 6 version 1 lease 0", "6 DELETE /gone= create 0 version 0 lease 0")
	s.do(put("/ours", "2"), remove("/new", ""))
	expect("7 PUT /ours=2 create 4 version 3 lease 0", "7 DELETE /new= create 0 version 0 lease 0")
	must[*clientv3.PutResponse](t)(etcd.Put(t.Context(), "/new", "again"))
	expect("8 PUT /new=again create 8 version 1 lease 0")
	shown := lines(s.all().Kvs)
	same(t, "what is shown", shown, []string{
		"8 /new=again create 8 version 1 lease 0", "6 /old=2 create 2 version 2 lease 0", "7 /ours=2 create 4 version 3 lease 0",
	})
	s.stop()

	// While the store is away, too; nobody has stamped these yet.
	must[*clientv3.DeleteResponse](t)(etcd.Delete(t.Context(), "/ours"))
	must[*clientv3.PutResponse](t)(etcd.Put(t.Context(), "/old", "3"))
	s = openStore(t, endpoint)
	next = s.watch(4)
	same(t, "the history after a restart", next(len(want)), want)
	expect("9 DELETE /ours= create 0 version 0 lease 0", "10 PUT /old=3 create 2 version 3 lease 0")
	old, err := s.Range(t.Context(), &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Revision: 8})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what was at revision 8", lines(old.Kvs), shown)
	s.stop()
	s = openStore(t, endpoint)
	same(t, "the history after another restart", s.watch(4)(len(want)), want)
}

func TestLeasesOfTheEtcdsOwnGoOnToExpire(t *testing.T) {
	endpoint := newEtcd(t)
	etcd := dial(t, endpoint)
	lease := must[*clientv3.LeaseGrantResponse](t)(etcd.Grant(t.Context(), 2))
	must[*clientv3.PutResponse](t)(etcd.Put(t.Context(), "/short", "", clientv3.WithLease(lease.ID)))
	must[*clientv3.PutResponse](t)(etcd.Put(t.Context(), "/kept", "", clientv3.WithLease(lease.ID)))
	s := openStore(t, endpoint)
	// A key that is put anew, without a lease, has none.
	s.do(put("/kept", "longer"))
	same(t, "the events", s.watch(4)(2), []string{
		"4 PUT /kept=longer create 3 version 2 lease 0", "5 DELETE /short= create 0 version 0 lease 0",
	})
}

// TestNothingIsLostBetweenTheStoreAndOthers has both sides count up the same
// keys, each by comparing first.
func TestNothingIsLostBetweenTheStoreAndOthers(t *testing.T) {
	endpoint := newEtcd(t)
	etcd := dial(t, endpoint)
	s := openStore(t, endpoint)
	const keys, each = 3, 60
	for k := range keys {
		s.do(put(fmt.Sprintf("/count/%d", k), "0"))
	}
	var clients sync.WaitGroup
	for k := range keys {
		key := fmt.Sprintf("/count/%d", k)
		clients.Go(func() {
			for done := 0; done < each; {
				now := must[*clientv3.GetResponse](t)(etcd.Get(t.Context(), key)).Kvs[0]
				n, _ := strconv.Atoi(string(now.Value))
				answer := must[*clientv3.TxnResponse](t)(etcd.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", now.ModRevision)).
					Then(clientv3.OpPut(key, strconv.Itoa(n+1))).Commit())
				if answer.Succeeded {
					done++
				}
			}
		})
		clients.Go(func() {
			for done := 0; done < each; {
				found, err := s.Range(t.Context(), &pb.RangeRequest{Key: []byte(key)})
				if err != nil {
					t.Error(err)
					return
				}
				now := found.Kvs[0]
				n, _ := strconv.Atoi(string(now.Value))
				answer, err := s.Txn(t.Context(), &pb.TxnRequest{
					Compare: []*pb.Compare{{Key: []byte(key), Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: now.ModRevision}}},
					Success: []*pb.RequestOp{put(key, strconv.Itoa(n+1))},
				})
				if err == nil && answer.Succeeded {
					done++
				}
			}
		})
	}
	clients.Wait()
	for k := range keys {
		key := fmt.Sprintf("/count/%d", k)
		direct := must[*clientv3.GetResponse](t)(etcd.Get(t.Context(), key)).Kvs[0]
		if string(direct.Value) != strconv.Itoa(2*each) {
			t.Errorf("%s is %s after %d and %d increments", key, direct.Value, each, each)
		}
		eventually(t, "the store shows what the etcd has", func(ctx context.Context) bool {
			found, err := s.Range(ctx, &pb.RangeRequest{Key: []byte(key)})
			return err == nil && string(found.Kvs[0].Value) == string(direct.Value)
		})
		found, err := s.Range(t.Context(), &pb.RangeRequest{Key: []byte(key)})
		if err != nil || found.Kvs[0].Version != 2*each+1 {
			t.Errorf("%s has version %v after %d changes, %v", key, found.GetKvs(), 2*each+1, err)
		}
	}
	// Every change was told, once and in order.
	revision := s.all().Header.Revision
	events := s.watch(2)(int(revision - 1))
	for i, e := range events {
		var rev int64
		if _, err := fmt.Sscanf(e, "%d", &rev); err != nil || rev != int64(i)+2 {
			t.Fatalf("event %d is %q", i, e)
		}
	}
}
