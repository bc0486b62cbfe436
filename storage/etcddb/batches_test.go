package etcddb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/storage/etcddb"
)

func TestATransactionOfManyKeysIsOneRevision(t *testing.T) {
	endpoint := newEtcd(t)
	s := openStore(t, endpoint)
	lease, err := s.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{TTL: 600})
	if err != nil {
		t.Fatal(err)
	}
	const many = 600
	for base := 0; base < many; base += 100 {
		var operations []*pb.RequestOp
		for i := range 100 {
			op := put(fmt.Sprintf("/many/%03d", base+i), "value")
			op.GetRequestPut().Lease = lease.ID
			operations = append(operations, op)
		}
		s.do(operations...)
	}
	s.do(remove("/many/0", "/many/3"))
	if count := s.all().Count; count != many/2 {
		t.Errorf("%d keys are left", count)
	}
	revoked, err := s.LeaseRevoke(t.Context(), &pb.LeaseRevokeRequest{ID: lease.ID})
	if err != nil {
		t.Fatal(err)
	}
	if found := s.all(); found.Count != 0 || found.Header.Revision != revoked.Header.Revision {
		t.Errorf("after the lease is gone, %d keys are left at revision %d of %d", found.Count, found.Header.Revision, revoked.Header.Revision)
	}
	direct := must[*clientv3.GetResponse](t)(dial(t, endpoint).Get(t.Context(), "/", clientv3.WithPrefix()))
	if direct.Count != 0 {
		t.Errorf("the etcd has %d keys", direct.Count)
	}
	for _, e := range s.watch(9)(many / 2) {
		if !strings.HasPrefix(e, "9 DELETE") {
			t.Fatalf("an event of the lease's end is %q", e)
		}
	}
}

func TestTheStoresOwnKeysAreHidden(t *testing.T) {
	endpoint := newEtcd(t)
	s := openStore(t, endpoint)
	s.do(put("/a", "1"))
	same(t, "what is shown", lines(s.all().Kvs), []string{"2 /a=1 create 2 version 1 lease 0"})
	if _, err := s.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{put(etcddb.Prefix+"clock", "")}}); err == nil {
		t.Error("a client writes to a key of the store's own")
	}
	if rev := s.do(put("/b", "1")); rev != 3 {
		t.Errorf("the next revision is %d", rev)
	}
	direct := must[*clientv3.GetResponse](t)(dial(t, endpoint).Get(t.Context(), "/", clientv3.WithFromKey()))
	if direct.Count != 2 {
		t.Errorf("after the NUL byte the etcd has %v", direct.Kvs)
	}
}

func TestCompactionDrivesEtcds(t *testing.T) {
	endpoint := newEtcd(t)
	etcd := dial(t, endpoint)
	s := openStore(t, endpoint)
	s.do(put("/kept", "1"))
	first := must[*clientv3.GetResponse](t)(etcd.Get(t.Context(), "/kept")).Header.Revision
	for i := range 20 {
		s.do(put("/changed", fmt.Sprint(i)))
	}
	s.do(remove("/changed", ""))
	last := s.do(put("/changed", "last"))
	history, err := s.Range(t.Context(), &pb.RangeRequest{Key: []byte("/changed"), Revision: 12})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what was at revision 12", lines(history.Kvs), []string{"12 /changed=9 create 3 version 10 lease 0"})
	if _, err := s.Compact(t.Context(), &pb.CompactionRequest{Revision: last, Physical: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "etcd is compacted", func(ctx context.Context) bool {
		_, err := etcd.Get(ctx, "/kept", clientv3.WithRev(first))
		return errors.Is(err, rpctypes.ErrCompacted)
	})
	want := []string{fmt.Sprintf("%d /changed=last create %d version 1 lease 0", last, last), "2 /kept=1 create 2 version 1 lease 0"}
	s.stop()
	s = openStore(t, endpoint)
	same(t, "what is shown after compaction and restart", lines(s.all().Kvs), want)
	if _, err := s.Range(t.Context(), &pb.RangeRequest{Key: []byte("/kept"), Revision: last - 1}); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a compacted revision: %v", err)
	}
	s.do(put("/changed", "later"))
	same(t, "the watch", s.watch(last)(2), []string{
		fmt.Sprintf("%d PUT /changed=last create %d version 1 lease 0", last, last),
		fmt.Sprintf("%d PUT /changed=later create %d version 2 lease 0", last+1, last),
	})
}

func TestWhatOthersCompactedIsCompacted(t *testing.T) {
	endpoint := newEtcd(t)
	etcd := dial(t, endpoint)
	s := openStore(t, endpoint)
	s.do(put("/kept", "1"))
	for i := range 5 {
		s.do(put("/changed", fmt.Sprint(i)))
	}
	last := s.do(put("/last", ""))
	want := lines(s.all().Kvs)
	s.stop()
	now := must[*clientv3.GetResponse](t)(etcd.Get(t.Context(), "/last"))
	must[*clientv3.CompactResponse](t)(etcd.Compact(t.Context(), now.Kvs[0].ModRevision))
	s = openStore(t, endpoint)
	same(t, "what is shown", lines(s.all().Kvs), want)
	if _, err := s.Range(t.Context(), &pb.RangeRequest{Key: []byte("/changed"), Revision: last - 1}); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a revision that is gone: %v", err)
	}
	same(t, "the watch from there on", s.watch(last)(1), []string{fmt.Sprintf("%d PUT /last= create %d version 1 lease 0", last, last)})
	if rev := s.do(put("/changed", "5")); rev != last+1 {
		t.Errorf("the next revision is %d", rev)
	}
}
