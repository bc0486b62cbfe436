package mvcc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/storage/sqlite"
)

const (
	// crashStoreEnv makes the test binary a process that writes to the store
	// at that path until it is killed.
	crashStoreEnv = "TASKCTL_TEST_CRASH_STORE"
	// killsEnv is how many kills TestNoKillLosesAnAcknowledgedWrite makes.
	killsEnv     = "TASKCTL_TEST_KILLS"
	defaultKills = 25
)

// runChild is what the process that is killed does. It reports whether this is
// one.
func runChild() bool {
	path := os.Getenv(crashStoreEnv)
	if path == "" {
		return false
	}
	if err := writeUntilKilled(path); err != nil {
		fmt.Println("error", err)
	}
	return true
}

// writeUntilKilled loads the store from several clients and tells each write
// that was acknowledged, one line each: revision, key, value ("-" for a
// deletion).
func writeUntilKilled(path string) error {
	ctx := context.Background()
	database, err := sqlite.Open(ctx, sqlite.Config{Path: path})
	if err != nil {
		return err
	}
	store, err := mvcc.Open(ctx, mvcc.Options{Backends: []mvcc.Backend{{Name: "main", Database: database}}})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var group sync.WaitGroup
	for client := range 8 {
		group.Go(func() {
			for i := 0; ; i++ {
				key, value := fmt.Sprintf("k/%d/%d", client, i%20), fmt.Sprintf("%d.%d.%d", os.Getpid(), client, i)
				op := putOp(key, value)
				if i%7 == 6 {
					op, value = deleteOp(key, ""), "-"
				}
				r, err := store.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{op}})
				if err != nil {
					fmt.Println("error", err)
					return
				}
				if deleted := r.Responses[0].GetResponseDeleteRange(); deleted != nil && deleted.Deleted == 0 {
					continue
				}
				fmt.Printf("%d %s %s\n", r.Header.Revision, key, value)
				if client == 0 && i%10 == 9 {
					_, err := store.Compact(ctx, &pb.CompactionRequest{Revision: r.Header.Revision - 50})
					if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
						fmt.Println("error", err)
					}
				}
			}
		})
	}
	group.Wait()
	return nil
}

// TestNoKillLosesAnAcknowledgedWrite kills a process under load again and
// again. After each kill everything that was acknowledged is there, no revision
// is missing or has changed its content, and a watch replays exactly that.
func TestNoKillLosesAnAcknowledgedWrite(t *testing.T) {
	kills := defaultKills
	if wanted := os.Getenv(killsEnv); wanted != "" {
		var err error
		if kills, err = strconv.Atoi(wanted); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "store.db")
	random := rand.New(rand.NewPCG(5, uint64(kills)))
	known := map[int64]string{} // by revision: what was acknowledged or replayed
	acknowledged := 0
	for kill := range kills {
		for rev, event := range loadAndKill(t, path, time.Duration(random.IntN(120))*time.Millisecond) {
			if old, ok := known[rev]; ok {
				t.Fatalf("kill %d: revision %d was %q and is given again to %q", kill, rev, old, event)
			}
			known[rev] = event
			acknowledged++
		}
		checkReplay(t, path, known)
	}
	t.Logf("%d kills, %d acknowledged writes", kills, acknowledged)
}

// loadAndKill runs a writing process, kills it after a while of load, and
// returns the writes that it told.
func loadAndKill(t *testing.T, path string, after time.Duration) map[int64]string {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), crashStoreEnv+"="+path)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	told := map[int64]string{}
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		line := scanner.Text()
		if line == "ready" {
			timer := time.AfterFunc(after, func() { _ = command.Process.Kill() })
			defer timer.Stop()
			continue
		}
		first, event, _ := strings.Cut(line, " ")
		rev, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			t.Errorf("the writing process says: %s", line)
			break
		}
		told[rev] = event
	}
	_ = command.Process.Kill()
	_ = command.Wait() // it was killed: its state is no news
	return told
}

// checkReplay opens the store and compares what a watch from the floor replays
// with what is known, and adds what was stored without being acknowledged.
func checkReplay(t *testing.T, path string, known map[int64]string) {
	t.Helper()
	store := openFile(t, path)
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	status, err := store.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ws := store.NewWatchStream()
	defer ws.Close()
	from := int64(2)
	if _, err := ws.Watch(server.WatchRequest{ID: 1, Key: []byte{0}, End: []byte{0}, StartRevision: from}); err != nil {
		t.Fatal(err)
	}
	for from <= status.Revision {
		r := next(t, ws)
		if r.CompactRevision != 0 {
			from = r.CompactRevision
			if _, err := ws.Watch(server.WatchRequest{ID: 1, Key: []byte{0}, End: []byte{0}, StartRevision: from}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, e := range r.Events {
			event := string(e.Kv.Key) + " " + string(e.Kv.Value)
			if e.Type == mvccpb.DELETE {
				event = string(e.Kv.Key) + " -"
			}
			if e.Kv.ModRevision != from {
				t.Fatalf("the replay goes on with revision %d, want %d", e.Kv.ModRevision, from)
			}
			if old, ok := known[from]; ok && old != event {
				t.Fatalf("revision %d is %q, it was %q", from, event, old)
			}
			known[from] = event
			from++
		}
	}
	for rev := range known {
		if rev > status.Revision {
			t.Fatalf("revision %d was acknowledged, the store is at %d", rev, status.Revision)
		}
	}
}
