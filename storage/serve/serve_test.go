package serve_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/serve"
	"github.com/taskctl-dev/taskctl/storage/server"
)

// run starts a server and returns a function that stops it and waits.
func run(t *testing.T, s *serve.Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("run: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("not ready after a minute")
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run ended with: %v", err)
		}
	}
}

func connect(t *testing.T, url string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestAnEmptyStoreIsAtRevisionOneAndKeepsWhatIsPut(t *testing.T) {
	dir := t.TempDir()
	socket := "unix://" + filepath.Join(dir, "s.sock")
	config := storage.Config{Spec: "sqlite", DataDir: dir}
	s := &serve.Server{Store: config, Listen: []string{"http://127.0.0.1:0", socket}}
	stop := run(t, s)
	if urls := s.URLs(); len(urls) != 2 || strings.HasSuffix(urls[0], ":0") || urls[1] != socket || s.Endpoint().URL != urls[0] {
		t.Errorf("the URLs are %v", urls)
	}
	client := connect(t, s.Endpoint().URL)
	empty, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil || empty.Header.Revision != 1 || empty.Count != 0 {
		t.Errorf("an empty store answers %v, %v", empty, err)
	}
	if _, err := client.Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	stop()

	stop = run(t, &serve.Server{Store: config, Listen: []string{socket}})
	defer stop()
	kept, err := connect(t, socket).Get(t.Context(), "key")
	if err != nil || kept.Header.Revision != 2 || kept.Count != 1 || string(kept.Kvs[0].Value) != "value" {
		t.Errorf("after the restart the store answers %v, %v", kept, err)
	}
}

func TestWhatCantBeServedIsRefused(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign.db")
	if err := os.WriteFile(foreign, []byte("this is no database at all, just some text that is long enough"), 0o600); err != nil {
		t.Fatal(err)
	}
	sqlite := storage.Config{Spec: "sqlite", DataDir: dir}
	anyPort := []string{"http://127.0.0.1:0"}
	tests := map[string]*serve.Server{
		"no URL to listen on":         {Store: sqlite},
		"only https uses one":         {Store: sqlite, Listen: anyPort, TLS: server.TLSFiles{CertFile: "c", KeyFile: "k"}},
		"of no kind":                  {Store: storage.Config{Spec: "oracle://x", DataDir: dir}, Listen: anyPort},
		"foreign.db":                  {Store: storage.Config{Spec: "sqlite://foreign.db", DataDir: dir}, Listen: anyPort},
		"https needs a certificate":   {Store: sqlite, Listen: []string{"https://127.0.0.1:0"}},
		"the URL must be":             {Store: sqlite, Listen: []string{"http://127.0.0.1:0", "tcp://x"}},
		filepath.Join(dir, "missing"): {Store: storage.Config{Spec: "sqlite", DataDir: filepath.Join(dir, "missing")}, Listen: anyPort},
	}
	for want, s := range tests {
		t.Run(want, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			err := s.Run(ctx, cancel)
			if err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
				t.Errorf("run ended with %v, want %q", err, want)
			}
		})
	}
}
