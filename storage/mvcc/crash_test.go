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

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/storage/storagetest"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

const (
	// crashStoreEnv makes the test binary a process that writes to the store
	// that it names until it is killed.
	crashStoreEnv = "TASKCTL_TEST_CRASH_STORE"
	// killsEnv is how many kills TestNoKillLosesAnAcknowledgedWrite makes in
	// each database, instead of these.
	killsEnv    = "TASKCTL_TEST_KILLS"
	sqliteKills = 200
	serverKills = 25
)

// runChild is what the process that is killed does. It reports whether this is
// one.
func runChild() bool {
	spec := os.Getenv(crashStoreEnv)
	if spec == "" {
		return false
	}
	if err := writeUntilKilled(spec); err != nil {
		fmt.Println("error", err)
	}
	return true
}

// writeUntilKilled loads the store from several clients and tells each write
// that was acknowledged, one line each: revision, key, value ("-" for a
// deletion).
func writeUntilKilled(spec string) error {
	ctx := context.Background()
	store, err := storage.Open(ctx, storage.Config{Spec: spec})
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
	for _, test := range []struct {
		name  string
		kills int
		spec  func(t *testing.T) string
	}{
		{"SQLite", sqliteKills, func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "store.db") }},
		{"PostgreSQL", serverKills, func(t *testing.T) string { return dbserver.Postgres(t) }},
		{"MySQL", serverKills, func(t *testing.T) string { return dbserver.MySQL(t) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			killAgainAndAgain(t, test.spec(t), killsFor(t, test.kills))
		})
	}
}

func killAgainAndAgain(t *testing.T, spec string, kills int) {
	// The seed repeats the moments of the kills, not what was under way then.
	random := rand.New(rand.NewPCG(storagetest.Seed(t), 0))
	known := map[int64]string{} // by revision: what was acknowledged or replayed
	acknowledged := 0
	for kill := range kills {
		for rev, event := range loadAndKill(t, spec, time.Duration(random.IntN(120))*time.Millisecond) {
			if old, ok := known[rev]; ok {
				t.Fatalf("kill %d: revision %d was %q and is given again to %q", kill, rev, old, event)
			}
			known[rev] = event
			acknowledged++
		}
		checkReplay(t, spec, known)
	}
	t.Logf("%d kills, %d acknowledged writes", kills, acknowledged)
	if acknowledged < kills {
		t.Error("that is too little load to judge by")
	}
}

// killsFor is how many kills the environment wants, or else otherwise.
func killsFor(t *testing.T, otherwise int) int {
	t.Helper()
	text := os.Getenv(killsEnv)
	if text == "" {
		return otherwise
	}
	kills, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", killsEnv, err)
	}
	return kills
}

// loadAndKill runs a writing process, kills it after a while of load, and
// returns the writes that it told.
func loadAndKill(t *testing.T, spec string, after time.Duration) map[int64]string {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), crashStoreEnv+"="+spec)
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
func checkReplay(t *testing.T, spec string, known map[int64]string) {
	t.Helper()
	store, err := storage.Open(t.Context(), storage.Config{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
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
