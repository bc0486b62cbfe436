package storagetest

import (
	"context"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/server"
)

// Serve serves a store at a URL (port 0 is a free one) and returns the address
// it got and a function that stops it. The store stays open.
func Serve(tb testing.TB, store server.Store, options server.Options, url string) (address string, stop func()) {
	tb.Helper()
	listener, err := server.Listen(url, server.TLSFiles{})
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
	case <-time.After(time.Minute):
		tb.Fatal("the server is not ready after a minute")
	}
	return listener.Addr().String(), func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("serve ended with: %v", err)
		}
	}
}
