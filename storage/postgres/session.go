package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// session is one writing connection, one that renews the ownership, and a pool
// of reading ones.
type session struct {
	db                *Database
	state             backend.State
	synchronousCommit string

	ended context.Context // by Close
	end   context.CancelFunc

	writing sync.Mutex // held by Apply, so that Close waits for it
	writer  *conn
	buffers [columnCount][]byte

	readers *sqlstore.Pool[*conn]
	keeper  *sqlstore.Pool[*conn] // of one connection

	closeOnce sync.Once
}

var _ backend.Session = (*session)(nil)

func (s *session) start(ctx context.Context) error {
	d := s.db
	var err error
	if s.synchronousCommit, err = d.checkServer(ctx, s.writer); err != nil {
		return err
	}
	switch _, version, err := d.readVersion(ctx, s.writer); {
	case err != nil:
		return explain(err)
	case version != schemaVersion:
		return fmt.Errorf("the tables of schema %q are gone; restore a backup, or restart to make new ones", d.schema)
	}
	take := &takeover{session: s}
	if err := sqlstore.TakeOver(ctx, take, d.self); err != nil {
		return fmt.Errorf("take over schema %q of database %q: %w", d.schema, d.config.Database, explain(err))
	}
	if s.state, err = take.readState(ctx); err != nil {
		return fmt.Errorf("read the state of schema %q: %w", d.schema, explain(err))
	}
	open := func(prepare []*statement) func(context.Context) (*conn, error) {
		return func(ctx context.Context) (*conn, error) { return d.connect(ctx, prepare) }
	}
	s.readers = sqlstore.NewLimitedPool(d.settings.readerLimits(), open(d.sql.reading()), (*conn).close)
	s.keeper = sqlstore.NewPool(1, open([]*statement{d.sql.beginWrite, d.sql.secure, d.sql.renew, d.sql.commit}), (*conn).close)
	return nil
}

func (s *session) State() backend.State { return s.state }

// Limits: a value must fit into one message beside a batch.
func (s *session) Limits() backend.Limits {
	return backend.Limits{KeyBytes: 2048, ValueBytes: 64 << 20, BatchBytes: 16 << 20}
}

func (s *session) Term() time.Duration { return s.db.settings.Term }

// Renew raises the beats if the epoch is still this session's.
func (s *session) Renew(ctx context.Context) error {
	sql := s.db.sql
	err := s.keeper.Do(ctx, func(ctx context.Context, c *conn, _ bool) (bool, error) {
		steps := []step{{statement: sql.beginWrite}, {statement: sql.secure, params: [][]byte{[]byte(s.synchronousCommit)}},
			{statement: sql.renew, params: [][]byte{int8Param(s.state.Epoch)}}, {statement: sql.commit}}
		if _, err := c.run(ctx, steps); err != nil {
			return c.rollback(ctx), explain(err)
		}
		if steps[2].affected != 1 {
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
