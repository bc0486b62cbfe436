package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// threeBackends is another topology than twoBackends.
const threeBackends = `apiVersion: taskctl.example.com/v1alpha1
kind: Appliance
storage:
  default: first
  backends:
  - {name: first, endpoint: "sqlite://first.db"}
  - {name: second, endpoint: "sqlite://second.db"}
  - {name: third, endpoint: "sqlite://third.db"}
  routes:
  - {backend: second, resource: secrets}
  - {backend: third, namespace: "load-*"}
`

// backupOutput is the part of the JSON that is looked at.
type backupOutput struct {
	Revision, Keys, Leases, Size, Start int64
	ByBackend                           map[string]int64
}

// fillStore stores keys in both backends of twoBackends, with a history.
func fillStore(t *testing.T, store *served) (lease clientv3.LeaseID) {
	t.Helper()
	granted, err := store.client.Grant(t.Context(), 3000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		store.put(fmt.Sprintf("/registry/example.example.com/tasks/default/t%d", i%40), fmt.Sprint(i))
		store.put(fmt.Sprintf("/registry/secrets/default/s%d", i%50), strings.Repeat("s", i))
		store.put(fmt.Sprintf("/registry/configmaps/load-%d/c", i%3), "binary \x00\xff")
		store.put(fmt.Sprintf("/registry/events/default/e%d", i), "", clientv3.WithLease(granted.ID))
	}
	if _, err := store.client.Delete(t.Context(), "/registry/secrets/default/s1", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	return granted.ID
}

// TestStorageBackupAndRestore backs a store of two databases up while it is
// written to, and brings it back into three.
func TestStorageBackupAndRestore(t *testing.T) {
	s := newShell(t)
	two, three := s.write("two.yaml", twoBackends), s.write("three.yaml", threeBackends)
	source := s.serve("source", "-f", two)
	lease := fillStore(t, source)

	// Two counters in two databases, the second one always last: a backup
	// must not have it ahead of the first.
	var ended atomic.Bool
	writes := make(chan error, 1)
	go func() {
		for i := 1; ; i++ {
			for _, key := range []string{"/registry/configmaps/default/first", "/registry/example.example.com/tasks/default/second"} {
				if _, err := source.client.Put(t.Context(), key, fmt.Sprintf("%06d", i)); err != nil {
					writes <- err
					return
				}
			}
			if ended.Load() {
				writes <- nil
				return
			}
		}
	}()
	eventually(t, "the first write", func() bool {
		found, err := source.client.Get(t.Context(), "/registry/example.example.com/tasks/default/second")
		return err == nil && found.Count == 1
	})
	file := filepath.Join(s.home, "all.backup")
	var taken backupOutput
	s.object(0, &taken, "storage", "backup", "--endpoint", source.url, file)
	want, _ := source.rows(taken.Revision)
	ended.Store(true)
	if err := <-writes; err != nil {
		t.Fatal(err)
	}
	if taken.Keys != int64(len(want)) || taken.Leases != 1 {
		t.Errorf("%+v, and %d rows", taken, len(want))
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() != taken.Size {
		t.Errorf("the file: %v, %v", info, err)
	}
	s.fails(1, []string{"storage", "backup", "--endpoint", source.url, file}, "is there already")
	_, shown := source.rows(0)
	source.stop()

	offline := filepath.Join(s.home, "offline.backup")
	var later backupOutput
	s.object(0, &later, "storage", "backup", "--data-dir", filepath.Join(s.home, "source"), "-f", two, offline)
	if later.Revision != shown || later.Leases != 1 {
		t.Errorf("the stopped store's backup is %+v, it was at %d", later, shown)
	}

	target := filepath.Join(s.home, "target")
	var done backupOutput
	s.object(0, &done, "storage", "restore", file, "--data-dir", target, "-f", three)
	if done.Keys != taken.Keys || done.Start <= shown || len(done.ByBackend) != 3 {
		t.Errorf("%+v", done)
	}
	restored := s.serve("target", "-f", three)
	got, now := restored.rows(0)
	if !slices.Equal(got, want) || now != done.Start {
		t.Errorf("restored %d rows at %d, want %d at %d", len(got), now, len(want), done.Start)
	}
	first, second := counter(t, got, "default/first"), counter(t, got, "default/second")
	if first != second && first != second+1 {
		t.Errorf("the counters are %d and %d: this is no snapshot", first, second)
	}
	for _, old := range []int64{2, taken.Revision, shown} {
		if _, err := restored.client.Get(t.Context(), "x", clientv3.WithRev(old)); !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("a read at %d: %v", old, err)
		}
	}
	left, err := restored.client.TimeToLive(t.Context(), lease, clientv3.WithAttachedKeys())
	if err != nil || left.GrantedTTL != 3000 || left.TTL < 2000 || len(left.Keys) != 60 {
		t.Errorf("the lease: %+v, %v", left, err)
	}
	if revision := restored.put("/registry/secrets/default/next", ""); revision != now+1 {
		t.Errorf("the next write is at %d after %d", revision, now)
	}
	s.must(0, "storage", "verify", "--endpoint", restored.url)
	restored.stop()
	s.must(0, "storage", "verify", "--data-dir", target, "-f", three)

	restore := []string{"storage", "restore", offline, "--data-dir", target, "-f", three}
	s.fails(1, restore, "is not empty", "nothing was changed", "--replace")
	s.object(0, &done, append(restore, "--replace")...)
	if done.Keys != later.Keys || done.Start <= now {
		t.Errorf("%+v after %d", done, now)
	}
}

func counter(t *testing.T, rows []string, key string) (value int) {
	t.Helper()
	for _, row := range rows {
		if _, rest, ok := strings.Cut(row, key+"="); ok {
			if _, err := fmt.Sscanf(rest, "%d@", &value); err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("there is no %s", key)
	return 0
}

func TestStorageRestoreOfADamagedFileChangesNothing(t *testing.T) {
	s := newShell(t)
	source := s.serve("source", "--storage", "sqlite")
	fillStore(t, source)
	file := filepath.Join(s.home, "all.backup")
	s.must(0, "storage", "backup", "--endpoint", source.url, file)
	source.stop()
	whole := readFile(t, file)
	for name, content := range map[string]string{
		"cut off":   whole[:len(whole)*2/3],
		"no end":    whole[:len(whole)-1],
		"changed":   whole[:len(whole)/2] + string([]byte{whole[len(whole)/2] ^ 1}) + whole[len(whole)/2+1:],
		"no backup": "something else, and long enough to be a backup",
		"empty":     "",
	} {
		damaged := s.write("damaged.backup", content)
		s.fails(1, []string{"storage", "restore", damaged, "--data-dir", filepath.Join(s.home, "new"), "--storage", "sqlite"}, damaged, "nothing was changed")
		if _, err := os.Stat(filepath.Join(s.home, "new")); !os.IsNotExist(err) {
			t.Errorf("%s: a folder was made: %v", name, err)
		}
		s.fails(1, []string{"storage", "restore", damaged, "--replace", "--data-dir", filepath.Join(s.home, "source"), "--storage", "sqlite"}, "nothing was changed")
	}
	again := s.serve("source", "--storage", "sqlite")
	if rows, _ := again.rows(0); len(rows) != 142 {
		t.Errorf("the store has %d rows", len(rows))
	}
	again.stop()
	s.fails(1, []string{"storage", "backup", filepath.Join(s.home, "none"), "--data-dir", filepath.Join(s.home, "nothing")}, "there is no store in")
}

// A restore that was killed half way leaves a folder that nothing starts on.
func TestStorageRestoreThatWasKilledIsRunAgain(t *testing.T) {
	s := newShell(t)
	source := s.serve("source", "--storage", "sqlite")
	fillStore(t, source)
	file := filepath.Join(s.home, "all.backup")
	s.must(0, "storage", "backup", "--endpoint", source.url, file)
	source.stop()
	target := filepath.Join(s.home, "target")
	s.must(0, "storage", "restore", file, "--data-dir", target, "--storage", "sqlite")
	// What a kill in between leaves: some rows, and the mark in state.json.
	state := filepath.Join(target, "state.json")
	content := readFile(t, state)
	if err := os.WriteFile(state, []byte(strings.Replace(content, "{", fmt.Sprintf(`{"restoring": %q,`, file), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"up"}, {"storage", "serve", "--listen", "http://127.0.0.1:0"}} {
		s.fails(1, append(command, "--data-dir", target), "has not come to its end", "taskctl storage restore "+file)
	}
	s.must(0, "storage", "restore", file, "--data-dir", target)
	again := s.serve("target")
	if rows, _ := again.rows(0); len(rows) != 142 {
		t.Errorf("the store has %d rows", len(rows))
	}
	again.stop()
}
