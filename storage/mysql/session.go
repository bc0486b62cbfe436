package mysql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// session is one writing connection, one that renews the ownership, and a pool
// of reading ones.
type session struct {
	db     *Database
	server server
	state  backend.State

	ended context.Context // by Close
	end   context.CancelFunc

	writing sync.Mutex // held by Apply, so that Close waits for it
	writer  *conn

	readers *sqlstore.Pool[*conn]
	keeper  *sqlstore.Pool[*conn] // of one connection

	closeOnce sync.Once
}

var _ backend.Session = (*session)(nil)

func (s *session) start(ctx context.Context) error {
	d := s.db
	var err error
	if s.server, err = d.checkServer(ctx, s.writer); err != nil {
		return err
	}
	if d.maxPacket.Swap(s.server.maxPacket) != s.server.maxPacket {
		// The driver's own limit is set when it connects.
		again, err := d.connect(ctx)
		if err != nil {
			return err
		}
		s.writer.close()
		s.writer = again
	}
	switch version, err := d.readVersion(ctx, s.writer); {
	case err != nil:
		return err
	case version != schemaVersion:
		return fmt.Errorf("the tables of database %q are gone; restore a backup, or restart to make new ones", d.config.DBName)
	}
	take := &takeover{session: s}
	if err := sqlstore.TakeOver(ctx, take, d.self); err != nil {
		return fmt.Errorf("take over database %q: %w", d.config.DBName, explain(err))
	}
	if s.state, err = take.readState(ctx); err != nil {
		return fmt.Errorf("read the state of database %q: %w", d.config.DBName, explain(err))
	}
	s.readers = sqlstore.NewLimitedPool(d.settings.readerLimits(), d.connect, (*conn).close)
	s.keeper = sqlstore.NewPool(1, d.connect, (*conn).close)
	return nil
}

func (s *session) State() backend.State { return s.state }

// rowText bounds what a row adds to a statement beside key and value: eight
// integers and punctuation.
const rowText = 220

// Limits: one row must fit into a statement of max_allowed_packet bytes, in
// which quoting can double every byte.
func (s *session) Limits() backend.Limits {
	const keyBytes = 2048
	return backend.Limits{
		KeyBytes:   keyBytes,
		ValueBytes: int(min((s.server.maxPacket-statementText)/2-keyBytes-rowText, 64<<20)),
		BatchBytes: 16 << 20,
	}
}

func (s *session) Term() time.Duration { return s.db.settings.Term }

// Renew raises the beats if the epoch is still this session's.
func (s *session) Renew(ctx context.Context) error {
	err := s.keeper.Do(ctx, func(ctx context.Context, c *conn, _ bool) (bool, error) {
		found, err := c.exec(ctx, begin+"UPDATE meta SET beats = beats + 1 WHERE one = 1 AND epoch = "+strconv.FormatInt(s.state.Epoch, 10)+"; "+commit, nil)
		if err != nil {
			return c.rollback(ctx), explain(err)
		}
		if found[beginResults] != 1 {
			return true, backend.ErrFenced
		}
		return true, nil
	})
	if err != nil && !errors.Is(err, backend.ErrFenced) {
		return fmt.Errorf("renew the ownership: %w", err)
	}
	return err
}

// Close interrupts what runs and closes every connection.
func (s *session) Close() error {
	s.closeOnce.Do(func() {
		s.end()
		s.readers.Close()
		s.keeper.Close()
		s.writing.Lock()
		defer s.writing.Unlock()
		s.writer.close()
	})
	return nil
}
