package harness

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Binary is the path of the taskctl binary under test: $TASKCTL_BIN, or
// bin/taskctl of this module. A missing binary fails the test.
func Binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv("TASKCTL_BIN")
	if path == "" {
		path = filepath.Join(moduleRoot(t), "bin", "taskctl")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no taskctl binary: %v; run `make build` first, or set TASKCTL_BIN", err)
	}
	return path
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the module's folder is unknown: the test was built without file names")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}
