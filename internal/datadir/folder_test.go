package datadir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) *Folder {
	t.Helper()
	folder, err := Open(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	if err := folder.Prepare(); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestStateSurvivesAReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "data")
	folder := open(t, path)
	if !folder.Fresh() {
		t.Error("a new folder is not fresh")
	}
	err := folder.Update(func(s *State) {
		s.Driver, s.Ports["apiserver"] = "embedded", 1234
		s.Kubeconfig = &Merged{File: "/f", Context: "c", FormerContext: "d"}
	})
	if err != nil {
		t.Fatal(err)
	}
	folder.Close()

	again := open(t, path)
	state := again.State()
	if again.Fresh() || state.Driver != "embedded" || state.Ports["apiserver"] != 1234 || state.Kubeconfig.FormerContext != "d" {
		t.Errorf("fresh %t, state %+v", again.Fresh(), state)
	}
	if state.PID != os.Getpid() || state.Version != Format || state.Name != "test" {
		t.Errorf("state %+v", state)
	}
	state.Ports["apiserver"] = 1
	if again.State().Ports["apiserver"] != 1234 {
		t.Error("State returned the folder's own map")
	}
}

func TestSecondOwnerIsRefusedWithThePID(t *testing.T) {
	path := t.TempDir()
	open(t, path)
	_, err := Open(path, "test")
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("error %v", err)
	}
	info, err := Inspect(path)
	if err != nil || !info.Held || info.PID != os.Getpid() || !info.Exists {
		t.Errorf("info %+v, error %v", info, err)
	}
}

func TestInspectDoesNotDisturbAnOwner(t *testing.T) {
	path := t.TempDir()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := Inspect(path); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	for range 200 {
		folder, err := Open(path, "test")
		if err != nil {
			t.Error(err)
			break
		}
		folder.Close()
	}
	close(stop)
	<-done
}

func TestNewerFolderIsRefused(t *testing.T) {
	path := t.TempDir()
	write(t, filepath.Join(path, "state.json"), `{"version": 99, "program": "v9.0.0"}`)
	_, err := Open(path, "test")
	var newer *NewerError
	if !errors.As(err, &newer) || !strings.Contains(err.Error(), "v9.0.0") {
		t.Fatalf("error %v", err)
	}
}

func TestDamagedStateNamesTheFile(t *testing.T) {
	path := t.TempDir()
	write(t, filepath.Join(path, "state.json"), `{"version": `)
	if _, err := Open(path, "test"); err == nil || !strings.Contains(err.Error(), "state.json is damaged") {
		t.Fatalf("error %v", err)
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	path := t.TempDir()
	write(t, filepath.Join(path, "thesis.tex"), "years of work")
	if _, err := Open(path, "test"); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(path, lockFile)); !errors.Is(err, os.ErrNotExist) {
		t.Error("a lock file was left in it")
	}
}

func TestFileInsteadOfAFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "")
	for _, p := range []string{path, filepath.Join(path, "below")} {
		if _, err := Open(p, "test"); err == nil || !strings.Contains(err.Error(), "--data-dir") || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v", err)
		}
	}
}

func TestFolderOfAnotherUser(t *testing.T) {
	path, owner := "/usr", "uid 0"
	if os.Geteuid() == 0 {
		path, owner = t.TempDir(), "uid 65534"
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(path, "test"); err == nil || !strings.Contains(err.Error(), "another user ("+owner) {
		t.Fatalf("error %v", err)
	}
}

func TestCopyOfAFolderHasPortsAndSocketsOfItsOwn(t *testing.T) {
	original, copied := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	folder := open(t, original)
	err := folder.Update(func(s *State) {
		s.Ports["apiserver"], s.Driver = 1234, "embedded"
		s.Kubeconfig = &Merged{File: "/f"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(copied, os.DirFS(original)); err != nil {
		t.Fatal(err)
	}
	state := open(t, copied).State()
	if len(state.Ports) != 0 || state.Kubeconfig != nil || state.SocketDir != filepath.Join(copied, "run") {
		t.Errorf("state %+v", state)
	}
	if state.Driver != "embedded" {
		t.Error("the driver was lost")
	}
}

func TestDeleteTakesWhatOpenMade(t *testing.T) {
	root := t.TempDir()
	folder := open(t, filepath.Join(root, "state", "taskctl", "x"))
	write(t, filepath.Join(folder.Path, "etcd"), "")
	if err := folder.Delete(); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(root); len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestAbandonLeavesNothingOfAFreshFolder(t *testing.T) {
	root := t.TempDir()
	if err := open(t, filepath.Join(root, "state", "taskctl", "x")).Abandon(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(root, "state", "taskctl", "x"))
	if err != nil || len(left) != 1 || left[0].Name() != stateFile {
		t.Errorf("left: %v, %v; want what Prepare wrote, and nothing else", left, err)
	}
	fresh, err := Open(filepath.Join(root, "other", "y"), "y")
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Abandon(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "other")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that was made is left: %v", err)
	}
}

func TestDeleteLeavesWhatIsNotItsOwn(t *testing.T) {
	root := t.TempDir()
	folder := open(t, filepath.Join(root, "taskctl", "x"))
	other := open(t, filepath.Join(root, "taskctl", "y"))
	if err := folder.Delete(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(other.Path); err != nil {
		t.Error(err)
	}
}

func TestEmptyKeepsTheLock(t *testing.T) {
	path := t.TempDir()
	folder := open(t, path)
	write(t, filepath.Join(path, "old.db"), "")
	if err := folder.Empty(); err != nil {
		t.Fatal(err)
	}
	if !folder.Fresh() {
		t.Error("an emptied folder is not fresh")
	}
	if _, err := Open(path, "test"); err == nil {
		t.Error("the lock was lost")
	}
	if _, err := os.Stat(filepath.Join(path, "old.db")); !errors.Is(err, os.ErrNotExist) {
		t.Error("old.db is still there")
	}
}

func TestLossOfTheFolderIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	folder := open(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	lost := make(chan error, 1)
	go func() { lost <- folder.AwaitLoss(ctx) }()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; err == nil || !strings.Contains(err.Error(), "was deleted") {
		t.Errorf("error %v", err)
	}
}

func TestInspectOfNothing(t *testing.T) {
	info, err := Inspect(filepath.Join(t.TempDir(), "nothing"))
	if err != nil || info.Exists || info.Held {
		t.Errorf("info %+v, error %v", info, err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
