package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const lockFile = "lock"

// LockedError says that a living process owns the folder.
type LockedError struct {
	Path string
	// PID is the owner's, 0 in the moment before it has written it.
	PID int
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("the data folder %s is in use by another process that is just starting", e.Path)
	}
	return fmt.Sprintf("the data folder %s is in use by process %d", e.Path, e.PID)
}

// lock takes the folder's owner lock. The kernel releases it when the process
// ends, however it ends, so there is nothing stale to break.
func lock(path string) (*os.File, error) {
	file := filepath.Join(path, lockFile)
	// Inspect holds the lock for a moment; only one held longer has an owner.
	var held *LockedError
	for range 10 {
		f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && stillThere(f, file) {
			return f, writePID(f)
		}
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w (does its file system support locks?)", file, err)
		}
		held = &LockedError{Path: path, PID: readPID(f)}
		f.Close()
		time.Sleep(20 * time.Millisecond)
	}
	return nil, held
}

// stillThere is false when the lock file was deleted, with its folder, between
// opening and locking it.
func stillThere(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(f *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// owner is the pid of the process that holds the folder's lock.
func owner(path string) (pid int, held bool, err error) {
	f, err := os.Open(filepath.Join(path, lockFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return readPID(f), true, nil
	}
	return 0, false, err
}
