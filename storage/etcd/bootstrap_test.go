package etcd

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// run starts the server, waits until it is ready and stops it.
func run(t *testing.T, server *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := server.Run(ctx, cancel); err != nil {
		t.Fatal(err)
	}
	if context.Cause(ctx) != context.Canceled {
		t.Fatal("not ready after a minute")
	}
}

// A kill can end the log after any of its records. Up to one of them nothing
// is committed and the member begins again; from there on it is kept.
func TestAMemberThatWasKilledWhileItWasMadeIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	server := &Server{Dir: filepath.Join(dir, "etcd"), Socket: filepath.Join(dir, "s")}
	run(t, server)
	member := filepath.Join(server.Dir, "member")
	segment := filepath.Join(member, "wal", firstSegment)
	whole, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	cutAt := func(length int) {
		t.Helper()
		// The file has its full size from the start; what was not written is zero.
		content := make([]byte, len(whole))
		copy(content, whole[:length])
		if err := os.WriteFile(segment, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if unborn, err := isUnborn(member); err != nil || unborn {
		t.Fatalf("the whole member: unborn %v, error %v", unborn, err)
	}
	var unbornAt []int
	for i, length := range recordEnds(t, segment) {
		cutAt(length)
		unborn, err := isUnborn(member)
		if err != nil {
			t.Fatal(err)
		}
		if unborn && len(unbornAt) < i {
			t.Fatalf("cut at %d it is unborn again", length)
		}
		if unborn {
			unbornAt = append(unbornAt, length)
		}
	}
	// The checksum, the metadata, the empty snapshot, the member's own entry.
	if len(unbornAt) < 4 {
		t.Fatalf("it is unborn cut at %v", unbornAt)
	}
	for _, length := range unbornAt {
		cutAt(length)
		run(t, server)
	}
}

// recordEnds are the offsets after which the log may have ended.
func recordEnds(t *testing.T, segment string) []int {
	t.Helper()
	file, err := os.Open(segment)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := wal.NewDecoder(fileutil.NewFileReader(file))
	ends := []int{0}
	for {
		var record walpb.Record
		if err := decoder.Decode(&record); err != nil {
			return ends
		}
		if record.GetType() == wal.CrcType {
			decoder.UpdateCRC(record.GetCrc())
		}
		ends = append(ends, int(decoder.LastOffset()))
	}
}
