package mvcc_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
)

func TestCompactedRowsAreDeletedAndTheFileShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	store := openFile(t, path)
	closeLater(t, store)
	value := strings.Repeat("x", 10_000)
	var last int64
	for i := range 1500 {
		last = put(t, store, fmt.Sprintf("k%d", i%10), value)
	}
	if _, err := store.Compact(t.Context(), &pb.CompactionRequest{Revision: last, Physical: true}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if kv := read(t, store, get(fmt.Sprintf("k%d", i))).Kvs[0]; kv.Version != 150 || string(kv.Value) != value {
			t.Errorf("k%d is at version %d", i, kv.Version)
		}
	}
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	// Housekeeping gives the pages back bit by bit, and leaves some for
	// what comes.
	eventually(t, "the file is below 6 MB of the 15 that were written", func() bool { return size() < 6_000_000 })
	if err := store.Defragment(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := size(); got > 500_000 {
		t.Errorf("after defragmentation the file has %d bytes", got)
	}
	status, err := store.Status(t.Context())
	if err != nil || status.SizeInUse < 100_000 || status.SizeInUse > 500_000 || status.Size < status.SizeInUse {
		t.Errorf("status tells %+v, %v", status, err)
	}
}

func TestAPinKeepsWhatACompactionWouldDelete(t *testing.T) {
	db := newMemoryDB()
	store := newMemory(t, db)
	rows := func() int {
		db.mu.Lock()
		defer db.mu.Unlock()
		return len(db.versions)
	}
	for i := range 10 {
		put(t, store, "a", fmt.Sprint(i)) // revisions 2 to 11
	}
	release, err := store.Pin(5)
	if err != nil {
		t.Fatal(err)
	}
	compact(t, store, 10, false)
	if _, err := store.Range(t.Context(), all(5)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("clients read below the floor: %v", err)
	}
	if _, err := store.Pin(5); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a pin below the floor: %v", err)
	}
	eventually(t, "what is below the pin is deleted", func() bool { return rows() == 7 })
	release()
	eventually(t, "the rest is deleted once the pin is gone", func() bool { return rows() == 2 })
}

func TestSlowOperationsAreLoggedWithTheirKeyAndNeverTheirValue(t *testing.T) {
	var log bytes.Buffer
	store := openFile(t, filepath.Join(t.TempDir(), "store.db"), func(o *mvcc.Options) {
		o.Slow = time.Nanosecond
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	put(t, store, "/registry/secrets/default/token", "hunter2")
	read(t, store, get("/registry/secrets/default/token"))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	if strings.Count(text, "/registry/secrets/default/token") < 2 || !strings.Contains(text, "duration=") {
		t.Errorf("the log is %q", text)
	}
	if strings.Contains(text, "hunter2") {
		t.Error("the log has a value")
	}
}
