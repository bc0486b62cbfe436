package datadir

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Terminate asks the process that owns the folder to stop in order, by SIGTERM,
// for when its control socket is gone: cleaners of /tmp delete sockets. It
// refuses if that process does not have the lock file open: in a container's
// own process namespace the number in the lock file may be anybody's.
func Terminate(path string, pid int) error {
	lock, err := os.Stat(filepath.Join(path, lockFile))
	if err != nil {
		return err
	}
	folder := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	descriptors, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("looking at process %d: %w", pid, err)
	}
	for _, descriptor := range descriptors {
		open, err := os.Stat(filepath.Join(folder, descriptor.Name()))
		if err == nil && os.SameFile(lock, open) {
			return syscall.Kill(pid, syscall.SIGTERM)
		}
	}
	return fmt.Errorf("process %d is not the one that owns the data folder %s: that one runs in another container", pid, path)
}
