package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// staleAfter is the age from which a .lock file is taken for one that a
	// killed kubectl left behind: kubectl holds it for milliseconds.
	staleAfter = time.Minute
	// lockWait is how long a younger one is waited for.
	lockWait = 10 * time.Second
)

// lock takes the lock that kubectl takes (client-go, tools/clientcmd/config.go:
// FILE.lock, made exclusively), and returns what releases it.
func lock(ctx context.Context, file string) (release func(), err error) {
	path := file + ".lock"
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			f.Close()
			return func() { os.Remove(path) }, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > staleAfter {
			removeStale(path, info)
			continue
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another program holds the lock %s: delete it if none is running", path)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// removeStale removes the lock that was seen to be stale, and no newer one
// that somebody else made after removing it: what was moved away is looked at
// again, and put back if it is another file.
func removeStale(path string, seen os.FileInfo) {
	aside := fmt.Sprintf("%s.stale-%d", path, os.Getpid())
	if err := os.Rename(path, aside); err != nil {
		return
	}
	if moved, err := os.Stat(aside); err == nil && !os.SameFile(seen, moved) {
		os.Link(aside, path)
	}
	os.Remove(aside)
}
