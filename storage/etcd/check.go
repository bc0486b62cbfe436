package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
)

// lockWait is how long the database may be locked by a process that is just
// about to end.
const lockWait = 100 * time.Millisecond

// check finds what etcd would wait for without end or say in riddles.
func (s *Server) check() error {
	if len(s.Socket) > maxSocketBytes {
		return fmt.Errorf("the socket's path %s has %d bytes, and the system allows %d: choose a shorter folder",
			s.Socket, len(s.Socket), maxSocketBytes)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return explain(err)
	}
	if err := s.checkLock(); err != nil {
		return err
	}
	return s.clearUnborn()
}

// checkLock finds another process that has the database open. etcd waits for
// it without end, and would take its socket away before that.
func (s *Server) checkLock() error {
	path := filepath.Join(s.Dir, "member", "snap", "db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	database, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("another process has the database %s open: stop it first, or use another folder", path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("the database %s is damaged: %w; restore the folder %s from a copy", path, err, s.Dir)
	case err != nil:
		return explain(err)
	}
	return database.Close()
}

// answers asks the server itself for a linearizable read.
func (s *Server) answers(ctx context.Context, server *embed.Etcd) error {
	if err := os.Chmod(s.Socket, 0o600); err != nil {
		return err
	}
	_, err := server.Server.Range(ctx, &pb.RangeRequest{Key: []byte("/"), Limit: 1})
	if ctx.Err() != nil {
		return nil // stopped meanwhile
	}
	return err
}

// explain adds what to do about errors that the user can do something about.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: free some space on the disk, then start again", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: the folder must be writable for this user; correct its owner or mode, or use another folder", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: raise the limit of open files (ulimit -n)", err)
	}
	return err
}
