package mvcc_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func TestAnEmptyStoreIsAtRevisionOneAndARestartLeavesNoGap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	want := int64(1)
	for range 3 {
		store := openFile(t, path)
		status, err := store.Status(context.Background())
		if err != nil || status.Revision != want {
			t.Fatalf("revision is %d, %v, want %d", status.Revision, err, want)
		}
		for range 5 {
			want++
			if rev := put(t, store, fmt.Sprintf("k%d", want%7), "v"); rev != want {
				t.Fatalf("revision %d, want %d", rev, want)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACompareThatFailsDrawsNoRevision(t *testing.T) {
	store := newFile(t)
	first := put(t, store, "k", "v")
	r, err := store.Txn(t.Context(), &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: []byte("k"), Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: 77}}},
		Success: []*pb.RequestOp{putOp("k", "w")},
	})
	if err != nil || r.Succeeded || r.Header.Revision != first {
		t.Fatalf("answer is %v, %v, want a failure at revision %d", r, err, first)
	}
	if rev, count := remove(t, store, "nothing", ""); rev != first || count != 0 {
		t.Fatalf("a delete of nothing is at %d, want %d", rev, first)
	}
	if rev := put(t, store, "k", "x"); rev != first+1 {
		t.Fatalf("the next write is at %d, want %d", rev, first+1)
	}
}

func TestAWriteOfManyKeysIsOneRevision(t *testing.T) {
	store := newFile(t)
	const keys = 5000
	for start := 0; start < keys; start += 100 {
		request := &pb.TxnRequest{}
		for i := start; i < start+100; i++ {
			request.Success = append(request.Success, putOp(fmt.Sprintf("k%06d", i), "v"))
		}
		if _, err := store.Txn(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	before := read(t, store, all(0))
	rev, count := remove(t, store, "k", "l")
	if rev != before.Header.Revision+1 || count != keys {
		t.Fatalf("deleted %d at %d, want %d at %d", count, rev, keys, before.Header.Revision+1)
	}
	if left := read(t, store, all(0)); left.Count != 0 {
		t.Fatalf("%d keys are left", left.Count)
	}
	if old := read(t, store, all(rev-1)); old.Count != keys || len(old.Kvs) != keys {
		t.Fatalf("%d keys before, want %d", old.Count, keys)
	}
}

func TestRevisionsOutsideTheHistoryAreRefusedAsEtcdDoes(t *testing.T) {
	store := newFile(t)
	var last int64
	for i := range 10 {
		last = put(t, store, "k", fmt.Sprint(i))
	}
	compact(t, store, 5, true)
	tests := []struct {
		name string
		rev  int64
		want error
	}{
		{"below the floor", 4, rpctypes.ErrCompacted},
		{"the floor itself", 5, nil},
		{"the newest", last, nil},
		{"beyond the sequencer", last + 1, rpctypes.ErrFutureRev},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := store.Range(t.Context(), all(test.rev))
			if !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
		})
	}
	if _, err := store.Compact(t.Context(), &pb.CompactionRequest{Revision: 5}); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("compaction below the floor: %v", err)
	}
	if _, err := store.Compact(t.Context(), &pb.CompactionRequest{Revision: last + 1}); !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("compaction in the future: %v", err)
	}
}
