package datadir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/taskctl-dev/taskctl/internal/version"
)

// Free space in bytes below which nothing is started. A new store reserves
// 64 MB for its log at once; one that is there already has reserved it.
const (
	minFreeFresh = 128 << 20
	minFreeAgain = 16 << 20
)

// Folder is a data folder that this process owns.
type Folder struct {
	// Path is absolute, with symbolic links resolved.
	Path string

	lock  *os.File
	made  []string // the folders that Open made, innermost first
	fresh bool     // there was no state.json

	mu    sync.Mutex
	state State
}

// Open makes the folder if need be, takes its lock and reads state.json.
// Errors are for people: they say what to do. A *LockedError means that a
// living process owns it, a *NewerError that it is a newer program's.
//
// The caller closes the folder. Nothing but the lock is written, so that a
// folder on a full disk can still be opened and deleted.
func Open(path, name string) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding the data folder: %w", err)
	}
	made, err := makeFolder(path)
	if err != nil {
		return nil, notUsable(path, err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, notUsable(path, err)
	}
	if err := checkFolder(path); err != nil {
		return nil, err
	}
	lockFile, err := lock(path)
	var locked *LockedError
	if errors.As(err, &locked) {
		return nil, err
	}
	if err != nil {
		return nil, notUsable(path, err)
	}
	f := &Folder{Path: path, lock: lockFile, made: made}
	if err := f.load(name); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenBare makes the folder if need be and takes its lock, and cares for
// nothing else: what is in it is its owner's. The caller closes it.
func OpenBare(path string) (*Folder, error) {
	made, err := makeFolder(path)
	if err != nil {
		return nil, notUsable(path, err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, notUsable(path, err)
	}
	lockFile, err := lock(path)
	var locked *LockedError
	if errors.As(err, &locked) {
		return nil, err
	}
	if err != nil {
		return nil, notUsable(path, err)
	}
	return &Folder{Path: path, lock: lockFile, made: made, fresh: true}, nil
}

// checkFolder refuses what is not a folder of this user and what is not, and
// would not become, an appliance's data folder.
func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return notUsable(path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("the data folder %s is a file: choose another with --data-dir", path)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() {
		return fmt.Errorf("the data folder %s belongs to another user (uid %d, you are %d): choose your own with --data-dir", path, owner, os.Geteuid())
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return notUsable(path, err)
	}
	for _, entry := range entries {
		if entry.Name() == stateFile || entry.Name() == lockFile {
			return nil
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("the folder %s has other files in it (%s, …) and is no data folder of taskctl: choose an empty one with --data-dir", path, entries[0].Name())
	}
	return nil
}

func checkSpace(path string, needed uint64) error {
	var space syscall.Statfs_t
	if err := syscall.Statfs(path, &space); err != nil {
		return notUsable(path, err)
	}
	if free := space.Bavail * uint64(space.Bsize); free < needed {
		return fmt.Errorf("the disk of the data folder %s is full: %d MB are free, %d MB are needed; make room, or choose another disk with --data-dir",
			path, free>>20, needed>>20)
	}
	return nil
}

func notUsable(path string, err error) error {
	var why string
	switch {
	case errors.Is(err, syscall.EROFS):
		why = "its file system is read-only"
	case errors.Is(err, os.ErrPermission):
		why = "you may not write there"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, os.ErrExist):
		why = "a file is in the way"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk of the data folder %s is full: make room, or choose another disk with --data-dir (%w)", path, err)
	default:
		return fmt.Errorf("the data folder %s can't be used: %w; choose another with --data-dir", path, err)
	}
	return fmt.Errorf("the data folder %s can't be used: %s; choose another with --data-dir, or set XDG_STATE_HOME (%w)", path, why, err)
}

// load reads state.json and drops from it what does not hold for this place.
func (f *Folder) load(name string) error {
	state, err := ReadState(f.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.fresh = true
	case err != nil:
		return err
	}
	if state.Path != f.Path {
		// A copy: ports, sockets, node and kubeconfig entries are the original's.
		state.Ports, state.SocketDir, state.Kubeconfig = nil, "", nil
		if state.Node != nil {
			state.Node.Complete = false
		}
	}
	state.Version, state.Program = Format, version.String()
	state.Name, state.Path, state.PID = name, f.Path, os.Getpid()
	if state.Ports == nil {
		state.Ports = map[string]int{}
	}
	f.state = state
	return nil
}

// Prepare makes what an appliance needs before it starts, clears what a killed
// one left, and writes state.json.
func (f *Folder) Prepare() error {
	if err := f.CheckSpace(); err != nil {
		return err
	}
	if err := f.prepareSockets(); err != nil {
		return err
	}
	if err := os.MkdirAll(f.Logs(), 0o700); err != nil {
		return notUsable(f.Path, err)
	}
	return f.Update(func(*State) {})
}

// CheckSpace refuses a disk that is too full to start on.
func (f *Folder) CheckSpace() error {
	if f.fresh {
		return checkSpace(f.Path, minFreeFresh)
	}
	return checkSpace(f.Path, minFreeAgain)
}

// Fresh says that no appliance ran in the folder before.
func (f *Folder) Fresh() bool { return f.fresh }

// State is a copy of what state.json says.
func (f *Folder) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.clone()
}

// Update changes state.json.
func (f *Folder) Update(change func(*State)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.state.clone()
	change(&state)
	if err := writeState(f.Path, state); err != nil {
		return notUsable(f.Path, err)
	}
	f.state = state
	return nil
}

// Kubeconfig, PKI, Logs and Etcd are paths inside the folder.
func (f *Folder) Kubeconfig() string { return Kubeconfig(f.Path) }
func (f *Folder) PKI() string        { return filepath.Join(f.Path, "pki") }
func (f *Folder) Logs() string       { return Logs(f.Path) }
func (f *Folder) Etcd() string       { return filepath.Join(f.Path, "etcd") }

// Kubeconfig is the administrator's kubeconfig in a data folder.
func Kubeconfig(path string) string { return filepath.Join(path, "kubeconfig") }

// KubectlCache is the cache folder of the embedded kubectl in a data folder.
func KubectlCache(path string) string { return filepath.Join(path, "kubectl-cache") }

// Logs is the folder of log files in a data folder.
func Logs(path string) string { return filepath.Join(path, "logs") }

// AwaitLoss blocks until the folder was deleted or replaced, which it reports
// as an error, or until ctx ends (nil).
func (f *Folder) AwaitLoss(ctx context.Context) error {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if !stillThere(f.lock, filepath.Join(f.Path, lockFile)) {
				return fmt.Errorf("the data folder %s was deleted, or moved, while in use", f.Path)
			}
		}
	}
}

// Close gives the folder up. The files stay; the sockets' folder goes if it is
// not inside.
func (f *Folder) Close() error {
	f.removeSockets()
	return f.lock.Close()
}

// Empty deletes everything in the folder but the lock.
func (f *Folder) Empty() error {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return notUsable(f.Path, err)
	}
	for _, entry := range entries {
		if entry.Name() == lockFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(f.Path, entry.Name())); err != nil {
			return fmt.Errorf("emptying the data folder: %w", err)
		}
	}
	f.fresh = true
	return f.load(f.State().Name)
}
