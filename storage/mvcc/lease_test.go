package mvcc_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
)

func grant(t *testing.T, s *mvcc.Store, id, ttl int64) {
	t.Helper()
	if _, err := s.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{ID: id, TTL: ttl}); err != nil {
		t.Fatalf("grant %d: %v", id, err)
	}
}

func putLeased(t *testing.T, s *mvcc.Store, key string, lease int64) error {
	t.Helper()
	_, err := s.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte(key), Lease: lease},
	}}}})
	return err
}

func remaining(t *testing.T, s *mvcc.Store, id int64) (ttl int64, keys []string) {
	t.Helper()
	r, err := s.LeaseTimeToLive(t.Context(), &pb.LeaseTimeToLiveRequest{ID: id, Keys: true})
	if err != nil {
		t.Fatalf("time to live of %d: %v", id, err)
	}
	for _, key := range r.Keys {
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	return r.TTL, keys
}

func TestLeasesAndTheirKeysSurviveARestartWithTheirDeadlines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	store := openFile(t, path)
	grant(t, store, 1, 1000)
	grant(t, store, 2, 500)
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := putLeased(t, store, key, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := putLeased(t, store, "b", 2); err != nil { // moves
		t.Fatal(err)
	}
	put(t, store, "c", "without") // detaches
	remove(t, store, "d", "")
	check := func() {
		t.Helper()
		if ttl, keys := remaining(t, store, 1); ttl < 900 || ttl > 1000 || fmt.Sprint(keys) != "[a]" {
			t.Errorf("lease 1 has %d s and %v", ttl, keys)
		}
		if ttl, keys := remaining(t, store, 2); ttl < 400 || ttl > 500 || fmt.Sprint(keys) != "[b]" {
			t.Errorf("lease 2 has %d s and %v", ttl, keys)
		}
	}
	check()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = openFile(t, path)
	closeLater(t, store)
	check()
	r, err := store.LeaseLeases(t.Context(), &pb.LeaseLeasesRequest{})
	if err != nil || len(r.Leases) != 2 || r.Leases[0].ID != 2 {
		t.Errorf("leases are %v, %v", r, err)
	}
}

func TestRevokingALeaseDeletesItsKeysAtOneRevision(t *testing.T) {
	store := newFile(t)
	grant(t, store, 7, 100)
	for i := range 5 {
		if err := putLeased(t, store, fmt.Sprint("k", i), 7); err != nil {
			t.Fatal(err)
		}
	}
	ws := watch(t, store, server.WatchRequest{ID: 1, Key: []byte("k"), End: []byte("l")})
	r, err := store.LeaseRevoke(t.Context(), &pb.LeaseRevokeRequest{ID: 7})
	if err != nil || r.Header.Revision != 7 {
		t.Fatalf("revoke: %v, %v, want revision 7", r, err)
	}
	answer := next(t, ws)
	if len(answer.Events) != 5 {
		t.Fatalf("%d events, want 5", len(answer.Events))
	}
	for i, e := range answer.Events {
		if string(e.Kv.Key) != fmt.Sprint("k", i) || e.Kv.ModRevision != 7 {
			t.Errorf("event %d is %v", i, e)
		}
	}
	if err := putLeased(t, store, "k", 7); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("a put under it: %v", err)
	}
	if _, err := store.LeaseRevoke(t.Context(), &pb.LeaseRevokeRequest{ID: 7}); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("a second revoke: %v", err)
	}
	if alive, err := store.LeaseKeepAlive(t.Context(), &pb.LeaseKeepAliveRequest{ID: 7}); err != nil || alive.TTL != 0 {
		t.Errorf("keep-alive: %v, %v, want TTL 0", alive, err)
	}
}

func TestALeaseExpiresUnlessItIsKeptAlive(t *testing.T) {
	store := newFile(t)
	grant(t, store, 1, 1) // raised to the least of 2 s
	grant(t, store, 2, 1)
	for id := int64(1); id <= 2; id++ {
		if err := putLeased(t, store, fmt.Sprint("k", id), id); err != nil {
			t.Fatal(err)
		}
	}
	started := time.Now()
	eventually(t, "the lease that is not kept alive expires", func() bool {
		r, err := store.LeaseKeepAlive(t.Context(), &pb.LeaseKeepAliveRequest{ID: 2})
		if err != nil || r.TTL != 2 {
			t.Fatalf("keep-alive: %v, %v", r, err)
		}
		return read(t, store, get("k1")).Count == 0
	})
	if took := time.Since(started); took < 1500*time.Millisecond {
		t.Errorf("it expired after %v", took)
	}
	if _, err := store.LeaseTimeToLive(t.Context(), &pb.LeaseTimeToLiveRequest{ID: 1}); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("time to live of the expired one: %v", err)
	}
	if read(t, store, get("k2")).Count != 1 {
		t.Error("the lease that was kept alive has expired too")
	}
}

func TestGrantsAreCheckedAsEtcdDoes(t *testing.T) {
	store := newFile(t)
	grant(t, store, 1, 10)
	if _, err := store.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{ID: 1, TTL: 10}); !errors.Is(err, rpctypes.ErrLeaseExist) {
		t.Errorf("the same ID again: %v", err)
	}
	if _, err := store.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{TTL: 9000000001}); !errors.Is(err, rpctypes.ErrLeaseTTLTooLarge) {
		t.Errorf("too long: %v", err)
	}
	r, err := store.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{TTL: 1})
	if err != nil || r.ID <= 0 || r.TTL != 2 {
		t.Errorf("a chosen ID: %v, %v", r, err)
	}
	if err := putLeased(t, store, "k", 99); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("a put under an unknown lease: %v", err)
	}
}

// TestALeaseOfTwoBackendsIsRevokedOnBoth puts keys of one lease on two
// databases and restarts in between: each knows the lease.
func TestALeaseOfTwoBackendsIsRevokedOnBoth(t *testing.T) {
	a, b := newMemoryDB(), newMemoryDB()
	store := openMemory(t, a, b)
	grant(t, store, 5, 100)
	for _, key := range []string{"a1", "b1"} {
		if err := putLeased(t, store, key, 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if len(a.leases) != 1 || len(b.leases) != 1 {
		t.Errorf("the lease is stored %d and %d times, want once each", len(a.leases), len(b.leases))
	}
	store = newMemory(t, a, b)
	if _, keys := remaining(t, store, 5); fmt.Sprint(keys) != "[a1 b1]" {
		t.Errorf("its keys are %v", keys)
	}
	r, err := store.LeaseRevoke(t.Context(), &pb.LeaseRevokeRequest{ID: 5})
	if err != nil || r.Header.Revision != 5 {
		t.Errorf("revoke: %v, %v, want one revision of each backend, 5 at the end", r, err)
	}
	if left := read(t, store, all(0)); left.Count != 0 {
		t.Errorf("%d keys are left", left.Count)
	}
	if len(a.leases) != 0 || len(b.leases) != 0 {
		t.Error("the lease is still stored")
	}
}
