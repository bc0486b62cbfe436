//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// lockFile takes the lock that keeps other processes (and other stores of this
// one) away from the database at path. Closing the file gives it back, and so
// does the end of the process.
func lockFile(path string) (*os.File, error) {
	name := path + ".lock"
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot make the lock file beside the database: %w; give the folder write permission or choose another", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w; stop that one first", path, backend.ErrOwned)
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return file, nil
}
