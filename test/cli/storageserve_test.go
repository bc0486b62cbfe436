package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// served is a running `taskctl storage serve`.
type served struct {
	*background
	url    string
	client *clientv3.Client
}

// serve starts a store in a folder of the user's home on a free port.
func (s *shell) serve(folder string, args ...string) *served {
	s.t.Helper()
	args = append([]string{"storage", "serve", "-o", "json", "--listen", "http://127.0.0.1:0", "--data-dir", filepath.Join(s.home, folder)}, args...)
	running := &served{background: s.start(args...)}
	running.await(`{"urls":[`)
	var answer struct{ URLs []string }
	if err := json.Unmarshal([]byte(running.stdout.String()), &answer); err != nil {
		s.t.Fatal(err)
	}
	running.url = answer.URLs[0]
	var err error
	running.client, err = clientv3.New(clientv3.Config{Endpoints: answer.URLs, DialTimeout: time.Minute, Logger: zap.NewNop()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = running.client.Close() })
	return running
}

// stop ends it as ^C does.
func (r *served) stop() {
	r.t.Helper()
	if err := r.client.Close(); err != nil {
		r.t.Error(err)
	}
	r.signal(syscall.SIGINT)
	if code := r.wait(limit); code != 130 && code != 0 {
		r.t.Fatalf("code %d: %s", code, r.stderr)
	}
}

func (r *served) put(key, value string, options ...clientv3.OpOption) int64 {
	r.t.Helper()
	response, err := r.client.Put(r.t.Context(), key, value, options...)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.Header.Revision
}

// rows are all rows with all their numbers, at a revision (0: now).
func (r *served) rows(revision int64) (rows []string, at int64) {
	r.t.Helper()
	response, err := r.client.Get(r.t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithRev(revision))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, kv := range response.Kvs {
		rows = append(rows, fmt.Sprintf("%s=%s@%d/%d/%d/%d", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease))
	}
	return rows, response.Header.Revision
}

// write makes a file in the user's home.
func (s *shell) write(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.home, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// object runs a command with -o json that has to end with the code, and reads
// what it prints.
func (s *shell) object(code int, into any, args ...string) {
	s.t.Helper()
	out := s.must(code, append(args, "-o", "json")...).Stdout
	if err := json.Unmarshal([]byte(out), into); err != nil || strings.Count(out, "\n") != 1 {
		s.t.Fatalf("%v: %v: %q", args, err, out)
	}
}
