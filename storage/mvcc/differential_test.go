package mvcc_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/storage/storagetest"
)

// engineTarget serves an engine over a SQLite file on a port that stays the
// same over restarts.
func engineTarget(t *testing.T) storagetest.Target {
	path := filepath.Join(t.TempDir(), "store.db")
	url := "http://127.0.0.1:0"
	return storagetest.Target{
		Name: "engine", Restarts: true, HashKV: true,
		Start: func(tb testing.TB) (string, func()) {
			store := openFile(tb, path)
			listener, err := server.Listen(url, server.TLSFiles{})
			if err != nil {
				tb.Fatal(err)
			}
			url = "http://" + listener.Addr().String()
			ctx, cancel := context.WithCancel(context.Background())
			ready, ended := make(chan struct{}), make(chan error, 1)
			go func() { ended <- server.New(store, server.Options{}).Serve(ctx, func() { close(ready) }, listener) }()
			select {
			case <-ready:
			case err := <-ended:
				tb.Fatalf("serve: %v", err)
			case <-time.After(30 * time.Second):
				tb.Fatal("not ready after 30 s")
			}
			return url, func() {
				cancel()
				if err := <-ended; err != nil {
					tb.Errorf("serve ended with: %v", err)
				}
				if err := store.Close(); err != nil {
					tb.Errorf("close: %v", err)
				}
			}
		},
	}
}

func TestEngineAnswersAsEtcdDoes(t *testing.T) {
	dir := t.TempDir()
	etcd := storagetest.Target{Name: "etcd", HashKV: true, Start: func(tb testing.TB) (string, func()) {
		return storagetest.StartEtcd(tb, dir)
	}}
	storagetest.Differential(t, storagetest.Seed(t), 3000, etcd, engineTarget(t))
}
