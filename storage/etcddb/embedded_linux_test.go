package etcddb_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/taskctl-dev/taskctl/storage/etcddb"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/sqlite"
)

// newEmbedded says where an embedded etcd lies; t.TempDir is too long for a
// socket.
func newEmbedded(t *testing.T) etcddb.Embedded {
	t.Helper()
	sockets, err := os.MkdirTemp("", "etcddb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	return etcddb.Embedded{Dir: filepath.Join(t.TempDir(), "etcd"), Socket: filepath.Join(sockets, "s")}
}

// bySlash routes keys that begin with /etcd to the first backend.
type bySlash struct{}

func (bySlash) Route(key string) int {
	if strings.HasPrefix(key, "/etcd") {
		return 0
	}
	return 1
}

func (bySlash) Overlap(string, string) []int { return []int{0, 1} }

func (bySlash) Reads(string) []int { return []int{0, 1} }

func openMixed(t *testing.T, embedded etcddb.Embedded, file string) *store {
	t.Helper()
	ours, err := etcddb.OpenEmbedded(t.Context(), embedded, etcddb.Config{Term: term})
	if err != nil {
		t.Fatal(err)
	}
	other, err := sqlite.Open(t.Context(), sqlite.Config{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := mvcc.Open(t.Context(), mvcc.Options{Router: bySlash{}, Backends: []mvcc.Backend{{Name: "main", Database: ours}, {Name: "file", Database: other}}})
	if err != nil {
		t.Fatal(err)
	}
	s := &store{t, opened}
	t.Cleanup(func() {
		if s.Store != nil {
			_ = s.Close() // a test may have broken it
		}
	})
	return s
}

func TestAnEmbeddedEtcdBesideAnotherDatabaseIsOneOrder(t *testing.T) {
	embedded, file := newEmbedded(t), filepath.Join(t.TempDir(), "store.db")
	s := openMixed(t, embedded, file)
	for i := range 5 {
		if rev := s.do(put("/etcd/"+strconv.Itoa(i), "")); rev != int64(2+2*i) {
			t.Errorf("revision %d", rev)
		}
		if rev := s.do(put("/file/"+strconv.Itoa(i), "")); rev != int64(3+2*i) {
			t.Errorf("revision %d", rev)
		}
	}
	want := lines(s.all().Kvs)
	if _, err := s.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{put("/etcd/0", ""), put("/file/0", "")}}); err == nil || !strings.Contains(err.Error(), `"main"`) || !strings.Contains(err.Error(), `"file"`) {
		t.Errorf("a transaction over both: %v", err)
	}
	s.stop()
	s = openMixed(t, embedded, file)
	same(t, "what is shown after a restart", lines(s.all().Kvs), want)
	if rev := s.do(put("/etcd/0", "")); rev != 12 {
		t.Errorf("the first revision after the restart is %d", rev)
	}
	s.stop()
}

// childVariable tells a test that it runs in a process of its own: etcd's
// goroutines stay behind after a fatal error.
const childVariable = "TASKCTL_TEST_ETCDDB_FULL_DISK"

func TestAFullDiskOfTheEmbeddedEtcdFailsItsBackendAlone(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		runAlone(t, childVariable)
		return
	}
	embedded := newEmbedded(t)
	s := openMixed(t, embedded, filepath.Join(t.TempDir(), "store.db"))
	s.do(put("/etcd/before", ""))
	s.do(put("/file/before", ""))
	fillDisk(t, filepath.Join(embedded.Dir, "member", "wal"))
	// What becomes of the write that meets the full disk is not known until
	// that etcd is back; those after it are refused by the backend's name.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := s.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{put("/etcd/after", "")}}); err == nil {
		t.Error("a write to a full disk is acknowledged")
	}
	for range 3 {
		s.do(put("/file/after", ""))
	}
	began := time.Now()
	_, err := s.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{put("/etcd/after", "")}})
	if err == nil || !strings.Contains(err.Error(), `"main"`) || time.Since(began) > time.Second {
		t.Errorf("a write to a backend that is known to be down: %v after %s", err, time.Since(began))
	}
	t.Log(err)
}

// fillDisk replaces this process's descriptors of files in the folder by one of
// a disk that is full.
func fillDisk(t *testing.T, folder string) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	replaced := 0
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name()))
		if err != nil || !strings.HasPrefix(target, folder) || !strings.HasSuffix(target, ".wal") {
			continue
		}
		descriptor, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Dup3(int(full.Fd()), descriptor, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		replaced++
	}
	if replaced == 0 {
		t.Fatalf("no log file in %s is open", folder)
	}
}

// runAlone runs this test in a process of its own, which a variable tells that
// it is the one.
func runAlone(t *testing.T, variable string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), variable+"=1")
	text, err := command.CombinedOutput()
	if !strings.Contains(string(text), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, text)
	}
}
