package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backup"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/sqlite"
)

// byLetter routes keys by their first letter to n backends.
type byLetter int

func (n byLetter) Route(key string) int { return int(key[0]) % int(n) }
func (n byLetter) Reads(string) []int   { return n.Overlap("", "") }
func (n byLetter) Overlap(from, end string) []int {
	if from != "" && end != "" && from[0] == end[0] {
		return []int{n.Route(from)}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func databases(t *testing.T, dir string, n int) []*sqlite.Database {
	t.Helper()
	var opened []*sqlite.Database
	for i := range n {
		database, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, fmt.Sprintf("%d.db", i))})
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, database)
	}
	return opened
}

func openStore(t *testing.T, dir string, n int) *mvcc.Store {
	t.Helper()
	options := mvcc.Options{Router: byLetter(n)}
	for i, database := range databases(t, dir, n) {
		options.Backends = append(options.Backends, mvcc.Backend{Name: fmt.Sprint(i), Database: database})
	}
	store, err := mvcc.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// restore runs Restore on the databases of a folder.
func restore(t *testing.T, file []byte, dir string, n int, change ...func(*backup.Target)) (backup.Restored, error) {
	t.Helper()
	target := backup.Target{Route: byLetter(n).Route}
	for i, database := range databases(t, dir, n) {
		session, err := database.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(session.Close(), database.Close()); err != nil {
				t.Error(err)
			}
		}()
		target.Backends = append(target.Backends, backup.Backend{Name: fmt.Sprint(i), Session: session})
	}
	for _, fn := range change {
		fn(&target)
	}
	return backup.Restore(context.Background(), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil }, target)
}

func put(t *testing.T, store *mvcc.Store, key, value string, lease int64) int64 {
	t.Helper()
	response, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// contents are all rows of a store in order of keys, and its revision.
func contents(t *testing.T, store *mvcc.Store) (rows []string, revision int64) {
	t.Helper()
	all, err := store.Range(t.Context(), &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		rows = append(rows, rowText(kv))
	}
	return rows, all.Header.Revision
}

func rowText(kv *mvccpb.KeyValue) string {
	return fmt.Sprintf("%s=%.10s(%d)@%d/%d/%d/%d", kv.Key, kv.Value, len(kv.Value), kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease)
}

// filled is a store with some history, and its backup.
func filled(t *testing.T) (rows []string, revision int64, file []byte) {
	t.Helper()
	store := openStore(t, t.TempDir(), 2)
	if _, err := store.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{ID: 77, TTL: 1000}); err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		put(t, store, fmt.Sprintf("%c-%d", 'a'+i%5, i%300), strings.Repeat("v", 4*i), 0)
	}
	put(t, store, "a-leased", "x", 77)
	put(t, store, "b-leased", "", 77)
	if _, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("a-1"), RangeEnd: []byte("a-2")}}},
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("c-one"), Value: []byte("1")}}},
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("c-two"), Value: []byte("2")}}},
	}}); err != nil {
		t.Fatal(err)
	}
	rows, revision = contents(t, store)
	held, err := store.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	put(t, store, "a-later", "not in the backup", 0)
	var out bytes.Buffer
	summary, err := backup.Write(t.Context(), &out, backup.OfStore(held), "test")
	if err != nil {
		t.Fatal(err)
	}
	if summary.Rows != int64(len(rows)) || summary.Revision != revision || summary.Leases != 1 {
		t.Errorf("%d rows at %d: %+v", len(rows), revision, summary)
	}
	return rows, revision, out.Bytes()
}

func TestABackupComesBackInAnotherTopology(t *testing.T) {
	rows, revision, file := filled(t)
	for _, backends := range []int{1, 2, 3} {
		dir := t.TempDir()
		done, err := restore(t, file, dir, backends)
		if err != nil {
			t.Fatal(err)
		}
		store := openStore(t, dir, backends)
		got, now := contents(t, store)
		if fmt.Sprint(got) != fmt.Sprint(rows) {
			t.Errorf("%d backends: %d rows, want %d", backends, len(got), len(rows))
		}
		if now != done.Start || now < revision+1000 {
			t.Errorf("the store is at %d after %d; restored %+v", now, revision, done)
		}
		for _, old := range []int64{revision, revision + 5, now - 1} {
			if _, err := store.Range(t.Context(), &pb.RangeRequest{Key: []byte("a"), Revision: old}); !errors.Is(err, rpctypes.ErrCompacted) {
				t.Errorf("a read at %d: %v", old, err)
			}
		}
		ttl, err := store.LeaseTimeToLive(t.Context(), &pb.LeaseTimeToLiveRequest{ID: 77, Keys: true})
		if err != nil || ttl.GrantedTTL != 1000 || ttl.TTL < 900 || ttl.TTL > 1000 || fmt.Sprintf("%s", ttl.Keys) != "[a-leased b-leased]" {
			t.Errorf("the lease is %v, %v", ttl, err)
		}
		if rev := put(t, store, "a-2", "next", 0); rev != now+1 {
			t.Errorf("the next write has revision %d after %d", rev, now)
		}
		if _, err := store.LeaseRevoke(t.Context(), &pb.LeaseRevokeRequest{ID: 77}); err != nil {
			t.Error(err)
		}
		if after, _ := contents(t, store); strings.Contains(fmt.Sprint(after), "leased") {
			t.Error("the revoked lease has left its keys")
		}
	}
}

func TestARestoreNeedsAnEmptyStoreOrMayReplaceIt(t *testing.T) {
	rows, _, file := filled(t)
	dir := t.TempDir()
	store := openStore(t, dir, 2)
	put(t, store, "b-mine", "mine", 0)
	before, revision := contents(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := restore(t, file, dir, 2)
	var notEmpty *backup.NotEmptyError
	if !errors.As(err, &notEmpty) || notEmpty.Backend != "0" {
		t.Errorf("error %v", err)
	}
	store = openStore(t, dir, 2)
	if after, now := contents(t, store); fmt.Sprint(after) != fmt.Sprint(before) || now != revision {
		t.Errorf("the refused restore has changed the store: %v at %d", after, now)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	done, err := restore(t, file, dir, 2, func(target *backup.Target) { target.Replace, target.Above = true, 1<<40 })
	if err != nil {
		t.Fatal(err)
	}
	store = openStore(t, dir, 2)
	if after, now := contents(t, store); fmt.Sprint(after) != fmt.Sprint(rows) || now != done.Start || now <= 1<<40 {
		t.Errorf("%d rows at %d", len(after), now)
	}
}

func TestWhatIsDamagedOrCutOffIsFoundBeforeAnythingChanges(t *testing.T) {
	_, _, file := filled(t)
	whole, err := backup.Check(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, content []byte) {
		t.Helper()
		if _, err := backup.Check(bytes.NewReader(content)); !errors.Is(err, backup.ErrDamaged) && !errors.Is(err, backup.ErrNoBackup) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for length := 0; length < len(file); length += 1 + len(file)/200 {
		refused(fmt.Sprintf("%d of %d bytes", length, len(file)), file[:length])
	}
	refused("one byte less", file[:len(file)-1])
	refused("one byte more", append(bytes.Clone(file), 0))
	refused("itself twice", append(bytes.Clone(file), file...))
	for at := 0; at < len(file); at += 1 + len(file)/200 {
		changed := bytes.Clone(file)
		changed[at] ^= 0x10
		summary, err := backup.Check(bytes.NewReader(changed))
		// The gzip header has a few bytes that mean nothing.
		if err == nil && summary != whole {
			t.Errorf("byte %d of %d: %+v", at, len(file), summary)
		}
	}
	dir := t.TempDir()
	if _, err := restore(t, file[:len(file)*2/3], dir, 2); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("restore: %v", err)
	}
	if rows, revision := contents(t, openStore(t, dir, 2)); len(rows) != 0 || revision != 1 {
		t.Errorf("the store has %d rows at %d", len(rows), revision)
	}
}

func TestWhatTheTargetDoesNotTakeIsFoundBeforeAnythingChanges(t *testing.T) {
	_, _, file := filled(t)
	dir := t.TempDir()
	_, err := restore(t, file, dir, 1, func(target *backup.Target) {
		target.Backends[0].Session = narrow{target.Backends[0].Session}
	})
	if err == nil || !strings.Contains(err.Error(), `"0" takes values of 1000 bytes at most`) {
		t.Errorf("error %v", err)
	}
	if rows, _ := contents(t, openStore(t, dir, 1)); len(rows) != 0 {
		t.Errorf("%d rows were written", len(rows))
	}
}

// narrow is a database that takes small values only.
type narrow struct{ backend.Session }

func (narrow) Limits() backend.Limits { return backend.Limits{ValueBytes: 1000} }
