package serve

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/endpoint"
)

// TB is the part of [testing.TB] that StartForTest uses.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

const testStartLimit = time.Minute

// StartForTest serves a store that lives as long as the test and returns where
// it is found: the Storage of [cluster.Options], for example. spec is one of
// [storage.Config]; "sqlite" is a file in a temporary folder, which is removed
// with everything in it. It ends the test when the start fails.
//
// [cluster.Options]: https://pkg.go.dev/github.com/taskctl-dev/taskctl/cluster#Options
func StartForTest(t TB, spec string) endpoint.Endpoint {
	t.Helper()
	// Paths of sockets are short, and TempDir's of tests are not.
	folder, err := os.MkdirTemp("", "taskctl-store-")
	if err != nil {
		t.Fatalf("make a folder for the store: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Errorf("remove the store's folder: %v", err)
		}
	})
	s := &Server{
		Store:  storage.Config{Spec: spec, DataDir: folder},
		Listen: []string{"unix://" + filepath.Join(folder, "etcd.sock")},
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func() { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("stop the store: %v", err)
		}
	})
	limit := time.NewTimer(testStartLimit)
	defer limit.Stop()
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil // for the cleanup
		t.Fatalf("start the store: %v", err)
	case <-limit.C:
		t.Fatalf("the store is not ready within %s", testStartLimit)
	}
	return s.Endpoint()
}
