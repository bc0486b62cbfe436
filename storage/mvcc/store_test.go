package mvcc_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/goleak"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openFile(t testing.TB, path string) *mvcc.Store {
	t.Helper()
	database, err := sqlite.Open(context.Background(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	store, err := mvcc.Open(context.Background(), mvcc.Options{Backends: []mvcc.Backend{{Name: "main", Database: database}}})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func put(t testing.TB, s *mvcc.Store, key, value string) int64 {
	t.Helper()
	r, err := s.Txn(context.Background(), &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

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

func BenchmarkPut(b *testing.B) {
	store := openFile(b, filepath.Join(b.TempDir(), "store.db"))
	defer store.Close()
	value := string(make([]byte, 1024))
	const clients = 32
	b.ResetTimer()
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			for i := client; i < b.N; i += clients {
				put(b, store, fmt.Sprintf("/registry/things/ns/%08d", i), value)
			}
		})
	}
	group.Wait()
}
