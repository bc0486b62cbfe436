package mvcc_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/goleak"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/storage/sqlite"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

// openFile opens a store over a SQLite file; the test closes it.
func openFile(t testing.TB, path string, change ...func(*mvcc.Options)) *mvcc.Store {
	t.Helper()
	database, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return openWith(t, mvcc.Options{Backends: []mvcc.Backend{{Name: "main", Database: database}}}, change...)
}

func openWith(t testing.TB, options mvcc.Options, change ...func(*mvcc.Options)) *mvcc.Store {
	t.Helper()
	for _, fn := range change {
		fn(&options)
	}
	store, err := mvcc.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// newFile is openFile on a new file, closed when the test ends.
func newFile(t testing.TB, change ...func(*mvcc.Options)) *mvcc.Store {
	t.Helper()
	store := openFile(t, filepath.Join(t.TempDir(), "store.db"), change...)
	closeLater(t, store)
	return store
}

// newMemory is a store over databases in memory, named and routed by the first
// letter of their keys: a…, b…, and so on.
func newMemory(t testing.TB, databases ...*memoryDB) *mvcc.Store {
	t.Helper()
	store := openMemory(t, databases...)
	closeLater(t, store)
	return store
}

func openMemory(t testing.TB, databases ...*memoryDB) *mvcc.Store {
	t.Helper()
	options := mvcc.Options{Router: letters(len(databases))}
	for i, db := range databases {
		options.Backends = append(options.Backends, mvcc.Backend{Name: string(rune('a' + i)), Database: db})
	}
	return openWith(t, options)
}

func closeLater(t testing.TB, store *mvcc.Store) {
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// letters routes keys by their first letter to n backends; a slash in front is
// skipped, and what is after the last letter belongs to the last backend.
type letters int

func (n letters) Route(key string) int {
	key = strings.TrimPrefix(key, "/")
	if key == "" || key[0] < 'a' {
		return 0
	}
	return min(int(key[0]-'a'), int(n)-1)
}

func (n letters) Overlap(from, end string) []int {
	if strings.TrimPrefix(from, "/") == "" || from[0] < 'a' {
		from = "a"
	}
	first := n.Route(from)
	last := int(n) - 1
	if end != "" {
		last = n.Route(end)
		if strings.TrimPrefix(end, "/") == string(rune('a'+last)) && last > first {
			last--
		}
	}
	var lanes []int
	for lane := first; lane <= last; lane++ {
		lanes = append(lanes, lane)
	}
	return lanes
}

func (n letters) Reads(key string) []int {
	lanes := n.Overlap(key+"/", key+"0")
	if own := n.Route(key); !slices.Contains(lanes, own) {
		lanes = append(lanes, own)
		slices.Sort(lanes)
	}
	return lanes
}

func putOp(key, value string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value)}}}
}

func deleteOp(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}}
}

func tryPut(ctx context.Context, s *mvcc.Store, key, value string) (int64, error) {
	r, err := s.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{putOp(key, value)}})
	if err != nil {
		return 0, err
	}
	return r.Header.Revision, nil
}

func put(t testing.TB, s *mvcc.Store, key, value string) int64 {
	t.Helper()
	rev, err := tryPut(t.Context(), s, key, value)
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return rev
}

func remove(t testing.TB, s *mvcc.Store, key, end string) (rev, count int64) {
	t.Helper()
	r, err := s.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{deleteOp(key, end)}})
	if err != nil {
		t.Fatalf("delete %s: %v", key, err)
	}
	return r.Header.Revision, r.Responses[0].GetResponseDeleteRange().Deleted
}

func read(t testing.TB, s *mvcc.Store, r *pb.RangeRequest) *pb.RangeResponse {
	t.Helper()
	response, err := s.Range(t.Context(), r)
	if err != nil {
		t.Fatalf("range %q to %q: %v", r.Key, r.RangeEnd, err)
	}
	return response
}

// all is every key, at a revision.
func all(revision int64) *pb.RangeRequest {
	return &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Revision: revision}
}

func get(key string) *pb.RangeRequest { return &pb.RangeRequest{Key: []byte(key)} }

func compact(t testing.TB, s *mvcc.Store, rev int64, physical bool) {
	t.Helper()
	if _, err := s.Compact(t.Context(), &pb.CompactionRequest{Revision: rev, Physical: physical}); err != nil {
		t.Fatalf("compact at %d: %v", rev, err)
	}
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// next is the next answer of a stream.
func next(t testing.TB, ws server.WatchStream) server.WatchResponse {
	t.Helper()
	select {
	case r := <-ws.Chan():
		return r
	case <-time.After(patience):
		t.Fatal("no answer of the watch")
		return server.WatchResponse{}
	}
}

func watch(t testing.TB, s *mvcc.Store, r server.WatchRequest) server.WatchStream {
	t.Helper()
	ws := s.NewWatchStream()
	t.Cleanup(ws.Close)
	if _, err := ws.Watch(r); err != nil {
		t.Fatal(err)
	}
	return ws
}
