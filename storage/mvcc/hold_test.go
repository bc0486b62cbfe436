package mvcc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
)

func heldRows(t *testing.T, held *mvcc.Held) (rows []string) {
	t.Helper()
	newest := int64(0)
	err := held.Rows(t.Context(), func(kv *mvccpb.KeyValue) error {
		if kv.ModRevision < newest {
			t.Errorf("%s has revision %d, after one with %d", kv.Key, kv.ModRevision, newest)
		}
		newest = kv.ModRevision
		rows = append(rows, fmt.Sprintf("%s=%s@%d/%d/%d/%d", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestWhatIsHeldStaysAsItWas(t *testing.T) {
	a, b := newMemoryDB(), newMemoryDB()
	store := newMemory(t, a, b)
	if _, err := store.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{ID: 7, TTL: 100}); err != nil {
		t.Fatal(err)
	}
	put(t, store, "b1", "old") // 2
	put(t, store, "a1", "old") // 3
	put(t, store, "b1", "new") // 4
	if _, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("b2"), Value: []byte("leased"), Lease: 7}}},
	}}); err != nil { // 5
		t.Fatal(err)
	}
	held, err := store.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.LeaseRevoke(t.Context(), &pb.LeaseRevokeRequest{ID: 7}); err != nil {
		t.Fatal(err)
	}
	put(t, store, "a1", "later")
	last := put(t, store, "b1", "later")
	compact(t, store, last, false)

	want := "[a1=old@3/3/1/0 b1=new@2/4/2/0 b2=leased@5/5/1/7]"
	if got := fmt.Sprint(heldRows(t, held)); held.Revision() != 5 || got != want {
		t.Errorf("%d: %s, want %s", held.Revision(), got, want)
	}
	leases, err := held.Leases(t.Context())
	if err != nil || len(leases) != 1 || leases[0].ID != 7 || leases[0].TTL != 100 || leases[0].Remaining > 100*time.Second || leases[0].Remaining < 50*time.Second {
		t.Errorf("leases %+v, %v", leases, err)
	}
	held.Release()
	eventually(t, "what was held is deleted", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.versions) == 1
	})
}

func TestAHoldWaitsForWhatIsPendingBelowIt(t *testing.T) {
	a, b := newMemoryDB(), newStalled()
	store := newMemory(t, a, b.memoryDB)
	put(t, store, "a1", "1")                       // 2
	pending := b.begin(t, store, "b1", "2")        // 3
	put(t, store, "a1", "3")                       // 4
	ctx, cancel := context.WithCancel(t.Context()) // gives up
	failed := make(chan error, 1)
	go func() {
		_, err := store.Hold(ctx)
		failed <- err
	}()
	cancel()
	if err := receive(t, "the hold that was given up", failed); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	held := make(chan *mvcc.Held, 1)
	go func() {
		h, err := store.Hold(t.Context())
		if err != nil {
			t.Error(err)
		}
		held <- h
	}()
	b.release <- nil
	if result := receive(t, "the pending put", pending); result.err != nil {
		t.Fatal(result.err)
	}
	h := receive(t, "the hold", held)
	defer h.Release()
	if got := fmt.Sprint(heldRows(t, h)); got != "[b1=2@3/3/1/0 a1=3@2/4/2/0]" {
		t.Errorf("%d: %s", h.Revision(), got)
	}
}
