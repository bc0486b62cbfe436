package etcd_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/taskctl-dev/taskctl/storage/etcd"
)

func TestDataIsKeptAndTheSocketIsPrivate(t *testing.T) {
	server := newServer(t)
	running := start(t, server)
	if info, err := os.Stat(server.Socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, error %v; want mode 600", info, err)
	}
	if info, err := os.Stat(server.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, error %v; want mode 700", info, err)
	}
	client := dial(t, server)
	if _, err := client.Put(t.Context(), "/key", "value"); err != nil {
		t.Fatal(err)
	}
	running.stop(t)
	if _, err := os.Stat(server.Socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}

	running = start(t, server)
	found, err := client.Get(t.Context(), "/key")
	if err != nil || len(found.Kvs) != 1 || string(found.Kvs[0].Value) != "value" {
		t.Errorf("after a restart: %v, error %v", found, err)
	}
	running.stop(t)
}

func TestAnEmptyStoreIsAtRevisionOneAndHasOneMember(t *testing.T) {
	server := newServer(t)
	running := start(t, server)
	defer running.stop(t)
	client := dial(t, server)
	found, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil || found.Count != 0 || found.Header.Revision != 1 {
		t.Errorf("an empty store answers %v, error %v", found, err)
	}
	members, err := client.MemberList(t.Context())
	if err != nil || len(members.Members) != 1 {
		t.Errorf("its members are %v, error %v", members, err)
	}
}

func TestOpenWatchesDoNotHoldTheStop(t *testing.T) {
	server := newServer(t)
	running := start(t, server)
	client := dial(t, server)
	var watches []clientv3.WatchChan
	for range 20 {
		watches = append(watches, client.Watch(clientv3.WithRequireLeader(t.Context()), "/", clientv3.WithPrefix(), clientv3.WithCreatedNotify()))
	}
	for _, watch := range watches {
		<-watch // it is open
	}
	began := time.Now()
	running.stop(t)
	// etcd by itself waits five seconds for them.
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

func TestADatabaseInUseIsRefusedAndLeftAlone(t *testing.T) {
	server := newServer(t)
	running := start(t, server)
	defer running.stop(t)
	second := &etcd.Server{Dir: server.Dir, Socket: server.Socket}
	began := time.Now()
	err := second.Run(t.Context(), func() { t.Error("the second server is ready") })
	wantError(t, err, "another process has the database", server.Dir, "stop it first")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the refusal took %s", took)
	}
	if _, err := dial(t, server).Put(t.Context(), "/key", "value"); err != nil {
		t.Errorf("the first server does not answer any more: %v", err)
	}
}

func TestWhatCanNotStartSaysWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, s *etcd.Server)
		want   []string
	}{
		"a socket path that is too long": {
			func(_ *testing.T, s *etcd.Server) { s.Socket = "/tmp/" + strings.Repeat("x", 120) },
			[]string{"125 bytes", "allows 107", "shorter folder"},
		},
		"a folder that is a file": {
			func(t *testing.T, s *etcd.Server) {
				if err := os.WriteFile(s.Dir, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"not a directory"},
		},
		"a damaged database": {
			func(t *testing.T, s *etcd.Server) {
				start(t, s).stop(t)
				overwrite(t, filepath.Join(s.Dir, "member", "snap", "db"))
			},
			[]string{"is damaged", "restore the folder"},
		},
		"a socket in a folder that is not there": {
			func(_ *testing.T, s *etcd.Server) { s.Socket = filepath.Join(s.Dir, "no", "such", "s") },
			[]string{"no such file or directory"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			test.change(t, server)
			wantError(t, server.Run(t.Context(), func() { t.Error("it is ready") }), test.want...)
		})
	}
}

// newServer is a server in a fresh folder. t.TempDir's path has the test's
// name in it, which is too long for a socket.
func newServer(t *testing.T) *etcd.Server {
	t.Helper()
	noLeaks(t)
	return newServerThatLeaks(t)
}

// noLeaks checks at the end of the test that it left no goroutine behind.
func noLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func newServerThatLeaks(t *testing.T) *etcd.Server {
	t.Helper()
	sockets, err := os.MkdirTemp("", "etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	return &etcd.Server{Dir: filepath.Join(t.TempDir(), "etcd"), Socket: filepath.Join(sockets, "s")}
}

type running struct {
	cancel context.CancelFunc
	done   chan error
}

// start runs the server and returns when it is ready.
func start(t *testing.T, server *etcd.Server) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel, done: make(chan error, 1)}
	ready := make(chan struct{})
	began := time.Now()
	go func() { r.done <- server.Run(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
		t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	case err := <-r.done:
		t.Fatalf("the server did not start: %v", err)
	}
	return r
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		t.Errorf("the server stopped with: %v", err)
	}
}

func dial(t *testing.T, server *etcd.Server) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint().URL}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func overwrite(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, fs.FileMode(0o600))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 16384)); err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}
