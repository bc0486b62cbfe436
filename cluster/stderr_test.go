package cluster_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// silentStderr fails the test if anything is written to stderr from now until
// the test ends. Kubernetes, etcd and their clients each have ways of their
// own to do that; those that were closed are found again here.
func silentStderr(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stderr")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	before, err := unix.Dup(unix.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Dup2(int(file.Fd()), unix.Stderr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Dup2(before, unix.Stderr); err != nil {
			t.Error(err)
		}
		if err := unix.Close(before); err != nil {
			t.Error(err)
		}
		written, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		if len(written) > 0 {
			t.Errorf("this was written to stderr:\n%s", written)
		}
	})
}
