package control

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskctl-dev/taskctl/internal/logging"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server for the test and returns its client.
func serve(t *testing.T, server *Server) *Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "control.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, listener) }()
	client := NewClient(socket)
	t.Cleanup(func() {
		client.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return client
}

func TestStatusArrivesAsItIs(t *testing.T) {
	want := Status{
		Name: "taskctl", State: Degraded, PID: 7, StartedAt: time.Now().UTC(), DataDir: "/data", Memory: OwnMemory(),
		Components: []Component{{Name: "operator", State: "backing-off", Restarts: 3, LastError: "lost"}},
	}
	client := serve(t, &Server{Status: func() Status { return want }})
	got, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintf("%+v %+v", got, *got.Memory) != fmt.Sprintf("%+v %+v", Status{
		Name: want.Name, State: want.State, PID: 7, StartedAt: want.StartedAt, DataDir: want.DataDir, Memory: got.Memory, Components: want.Components,
	}, *want.Memory) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Memory.Resident <= 0 || got.Memory.Anonymous <= 0 {
		t.Errorf("memory %+v", got.Memory)
	}
}

func TestStopIsPassedOn(t *testing.T) {
	var stops atomic.Int32
	client := serve(t, &Server{Stop: func() { stops.Add(1) }})
	for range 2 {
		if pid, err := client.Stop(t.Context()); err != nil || pid != os.Getpid() {
			t.Fatalf("pid %d, error %v", pid, err)
		}
	}
	if stops.Load() != 2 {
		t.Errorf("%d stops", stops.Load())
	}
}

func TestLogs(t *testing.T) {
	logs := logging.New(t.TempDir(), 0)
	defer logs.Close()
	fmt.Fprintln(logs.Writer("operator"), "one line")
	client := serve(t, &Server{Logs: filepath.Dir(logs.Path("operator"))})
	var out bytes.Buffer
	if err := client.Logs(t.Context(), logging.ReadOptions{Components: []string{"operator"}}, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), " one line\n") {
		t.Errorf("%q", out.String())
	}
	err := client.Logs(t.Context(), logging.ReadOptions{Components: []string{"nothing"}}, &out)
	if err == nil || !strings.Contains(err.Error(), `no log of "nothing"; there are: operator`) {
		t.Errorf("error %v", err)
	}
	out.Reset()
	if err := client.Logs(t.Context(), logging.ReadOptions{Since: time.Now().Add(time.Hour)}, &out); err != nil || out.Len() != 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestFollowedLogsEndWithTheServer(t *testing.T) {
	logs := logging.New(t.TempDir(), 0)
	defer logs.Close()
	fmt.Fprintln(logs.Writer("operator"), "the first line")
	server := &Server{Logs: filepath.Dir(logs.Path("operator"))}
	socket := filepath.Join(t.TempDir(), "control.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, listener) }()
	client := NewClient(socket)
	defer client.Close()

	lines := make(chan string, 10)
	followed := make(chan error, 1)
	go func() {
		followed <- client.Logs(t.Context(), logging.ReadOptions{Follow: true}, writer(func(p []byte) { lines <- string(p) }))
	}()
	if line := <-lines; !strings.Contains(line, "the first line") {
		t.Errorf("%q", line)
	}
	fmt.Fprintln(logs.Writer("operator"), "a later line")
	if line := <-lines; !strings.Contains(line, "a later line") {
		t.Errorf("%q", line)
	}
	cancel()
	<-followed
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestNobodyThere(t *testing.T) {
	client := NewClient(filepath.Join(t.TempDir(), "nothing.sock"))
	defer client.Close()
	if _, err := client.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "asking the appliance") {
		t.Errorf("error %v", err)
	}
}
