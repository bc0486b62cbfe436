package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/storage/storagetest"
)

// serveStore serves a store on a free port until the returned function is called.
func serveStore(tb testing.TB, store server.Store, options server.Options, url string, files server.TLSFiles) (endpoint string, stop func()) {
	tb.Helper()
	listener, err := server.Listen(url, files)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- server.New(store, options).Serve(ctx, func() { close(ready) }, listener) }()
	select {
	case <-ready:
	case err := <-ended:
		tb.Fatalf("serve: %v", err)
	case <-time.After(30 * time.Second):
		tb.Fatal("not ready after 30 s")
	}
	return listener.Addr().String(), func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("serve ended with: %v", err)
		}
	}
}

// TestServicesAnswerAsEtcdDoes puts the services in front of an etcd and
// compares them with another one: a difference is the services' own.
func TestServicesAnswerAsEtcdDoes(t *testing.T) {
	behind, front := t.TempDir(), t.TempDir()
	ours := storagetest.Target{Name: "services", Restarts: true, HashKV: true}
	var endpoint, url string
	ours.Start = func(tb testing.TB) (string, func()) {
		if endpoint == "" {
			var stopEtcd func()
			endpoint, stopEtcd = storagetest.StartEtcd(t, behind)
			t.Cleanup(stopEtcd)
			url = "http://127.0.0.1:0"
		}
		address, stop := serveStore(t, newEtcdStore(t, endpoint), server.Options{}, url, server.TLSFiles{})
		url = "http://" + address // the same one after a restart
		return url, stop
	}
	etcd := storagetest.Target{Name: "etcd", HashKV: true, Start: func(tb testing.TB) (string, func()) {
		return storagetest.StartEtcd(tb, front)
	}}
	storagetest.Differential(t, storagetest.Seed(t), 2000, etcd, ours)
}
