package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// reader is one reading connection with its statements.
type reader struct {
	conn                  *conn
	value, values         *statement
	newest, newestFrom    *statement
	scan, scanValues      *statement
	next, leases          *statement
	pages, free, pageSize *statement
}

func openReader(path string) (*reader, error) {
	c, err := openConn(path, false)
	if err != nil {
		return nil, err
	}
	r := &reader{conn: c}
	var failed error
	prepare := func(query string) *statement {
		s, err := c.prepare(query)
		failed = errors.Join(failed, err)
		return s
	}
	if err := c.exec("PRAGMA query_only = ON"); err != nil {
		failed = err
	}
	r.value = prepare("SELECT id, value FROM versions WHERE id = ?")
	r.values = prepare("SELECT id, value FROM versions WHERE id IN (" + strings.Repeat("?,", valuesAtOnce-1) + "?) ORDER BY id")
	// Beside max(), SQLite takes the other columns from the row that has the
	// maximum (https://www.sqlite.org/lang_select.html#bareagg).
	const newest = "SELECT id, max(rev), create_rev, version, lease, deleted, key FROM versions WHERE key >= ?1 AND id <= ?2"
	r.newestFrom = prepare(newest + " GROUP BY key ORDER BY key")
	r.newest = prepare(newest + " AND key < ?3 GROUP BY key ORDER BY key")
	const scan = "FROM versions WHERE id > ? AND id <= ? ORDER BY id"
	r.scan = prepare("SELECT id, rev, sub, prev, create_rev, version, lease, deleted, key, NULL " + scan)
	r.scanValues = prepare("SELECT id, rev, sub, prev, create_rev, version, lease, deleted, key, value " + scan)
	r.next = prepare("SELECT id, rev FROM versions WHERE id >= ? ORDER BY id LIMIT 1")
	r.leases = prepare("SELECT id, ttl, deadline FROM leases")
	r.pages = prepare("PRAGMA page_count")
	r.free = prepare("PRAGMA freelist_count")
	r.pageSize = prepare("PRAGMA page_size")
	if failed != nil {
		return nil, errors.Join(failed, c.close())
	}
	return r, nil
}

// read runs fn on a reader of the pool.
func (s *session) read(ctx context.Context, fn func(*reader) error) error {
	if s.closing.Load() {
		return errors.New("the database session is closed")
	}
	select {
	case r, open := <-s.idle:
		if !open {
			return errors.New("the database session is closed")
		}
		defer func() { s.idle <- r }()
		return fn(r)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// every calls fn for each row until it fails, and ends with ctx.
func every(ctx context.Context, s *statement, fn func(row []driver.Value) error) error {
	count := 0
	err := s.each(func(row []driver.Value) (bool, error) {
		if count++; count&255 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		return true, fn(row)
	})
	if errors.Is(err, backend.ErrStop) {
		return nil
	}
	return err
}

func (s *session) Newest(ctx context.Context, from, end []byte, upTo int64, fn func(*backend.Version) error) error {
	return s.read(ctx, func(r *reader) error {
		statement := r.newestFrom
		if end != nil {
			statement = r.newest
			statement.set(2, notNil(end))
		}
		statement.set(0, notNil(from), upTo)
		return every(ctx, statement, func(row []driver.Value) error {
			v := backend.Version{}
			if err := integers(row[:6], &v.ID, &v.Rev, &v.Create, &v.Version, &v.Lease, &v.Deleted); err != nil {
				return err
			}
			v.Key, _ = row[6].([]byte)
			return fn(&v)
		})
	})
}

func (s *session) Scan(ctx context.Context, after, upTo int64, values bool, fn func(*backend.Version) error) error {
	return s.read(ctx, func(r *reader) error {
		statement := r.scan
		if values {
			statement = r.scanValues
		}
		statement.set(0, after, upTo)
		return every(ctx, statement, func(row []driver.Value) error {
			v := backend.Version{}
			if err := integers(row[:8], &v.ID, &v.Rev, &v.Sub, &v.Prev, &v.Create, &v.Version, &v.Lease, &v.Deleted); err != nil {
				return err
			}
			v.Key, _ = row[8].([]byte)
			v.Value, _ = row[9].([]byte)
			return fn(&v)
		})
	})
}

func (s *session) Next(ctx context.Context, id int64) (foundID, revision int64, found bool, err error) {
	err = s.read(ctx, func(r *reader) error {
		r.next.set(0, id)
		return every(ctx, r.next, func(row []driver.Value) error {
			found = true
			return integers(row, &foundID, &revision)
		})
	})
	return foundID, revision, found, err
}

func (s *session) Leases(ctx context.Context, fn func(backend.Lease) error) error {
	return s.read(ctx, func(r *reader) error {
		return every(ctx, r.leases, func(row []driver.Value) error {
			lease := backend.Lease{}
			if err := integers(row, &lease.ID, &lease.TTL, &lease.Deadline); err != nil {
				return err
			}
			return fn(lease)
		})
	})
}

// integers copies columns into *int64 and *bool.
func integers(row []driver.Value, into ...any) error {
	for i, column := range row {
		n, ok := column.(int64)
		if !ok {
			return fmt.Errorf("column %d is %T, not an integer: the database is damaged", i, column)
		}
		switch target := into[i].(type) {
		case *int64:
			*target = n
		case *bool:
			*target = n != 0
		}
	}
	return nil
}
