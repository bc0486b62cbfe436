package sqlite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// session is one writing connection, a pool of readers and the checkpointer.
type session struct {
	path  string
	state backend.State

	writer   *conn
	sql      writeStatements
	vacuumed bool // since the last checkpoint that was asked for

	idle    chan *reader // readers that nobody uses
	readers int
	closing atomic.Bool

	checkpoint *checkpointer

	closeOnce sync.Once
	closeErr  error
}

var _ backend.Session = (*session)(nil)

func (s *session) start(readers int) error {
	if err := s.writer.exec("BEGIN IMMEDIATE; UPDATE meta SET epoch = epoch + 1; COMMIT"); err != nil {
		return errors.Join(err, s.writer.exec("ROLLBACK"))
	}
	row, err := s.writer.integers("SELECT epoch, last_rev, last_id, floor, swept FROM meta")
	if err != nil {
		return err
	}
	s.state = backend.State{Epoch: row[0], LastRev: row[1], LastID: row[2], Floor: row[3], Swept: row[4]}
	if err := s.sql.prepare(s.writer); err != nil {
		return err
	}
	for range readers {
		r, err := openReader(s.path)
		if err != nil {
			return err
		}
		s.readers++
		s.idle <- r
	}
	s.checkpoint, err = startCheckpointer(s.path)
	return err
}

func (s *session) State() backend.State { return s.state }

// Limits: SQLite takes keys and values far above etcd's request limit; the
// key limit is the one that all databases share.
func (s *session) Limits() backend.Limits {
	return backend.Limits{KeyBytes: 2048, ValueBytes: 1 << 29}
}

// Term is zero: the lock on the file lasts as long as the process.
func (s *session) Term() time.Duration { return 0 }

// Renew has nothing to do.
func (s *session) Renew(context.Context) error { return nil }

// Close waits for running reads and closes every connection.
func (s *session) Close() error {
	s.closeOnce.Do(func() {
		s.closing.Store(true)
		var errs []error
		if s.checkpoint != nil {
			errs = append(errs, s.checkpoint.close())
		}
		for range s.readers {
			errs = append(errs, (<-s.idle).conn.close())
		}
		close(s.idle)
		errs = append(errs, s.writer.close())
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}
