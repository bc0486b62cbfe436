package etcd_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAFullDiskIsAnErrorAndNothingIsAcknowledged puts /dev/full in the place
// of the open write-ahead log: each write there fails as on a full disk.
func TestAFullDiskIsAnErrorAndNothingIsAcknowledged(t *testing.T) {
	// etcd's goroutines that wait for the one that hit the error stay.
	server := newServerThatLeaks(t)
	running := start(t, server)
	client := dial(t, server)
	if _, err := client.Put(t.Context(), "/before", "value"); err != nil {
		t.Fatal(err)
	}
	fillDisk(t, filepath.Join(server.Dir, "member", "wal"))

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := client.Put(ctx, "/after", "value"); err == nil {
		t.Error("a write was acknowledged although the disk is full")
	}
	wantError(t, <-running.done, server.Dir, "no space left on device", "free some space")
	running.cancel()
}

// fillDisk replaces this process's descriptors of files in the folder.
func fillDisk(t *testing.T, folder string) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	replaced := 0
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name()))
		if err != nil || !strings.HasPrefix(target, folder) || !strings.HasSuffix(target, ".wal") {
			continue
		}
		descriptor, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Dup3(int(full.Fd()), descriptor, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		replaced++
	}
	if replaced == 0 {
		t.Fatalf("no log file in %s is open", folder)
	}
}
