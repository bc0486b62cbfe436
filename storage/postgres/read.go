package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// Pages of a scan begin with so many rows.
const (
	firstKeys   = 512
	firstRows   = 256
	valuesAtOne = 1024 // ids in one query of Values
)

// read runs one query in a read-only transaction of its own. upTo is what the
// database must have stored at least: behind a proxy, or after a failover to a
// standby that was behind, a shorter answer would look like a complete one.
//
// A connection that turns out to be broken is replaced once: it may have been
// idle since a restart of the server. row has been called for the rows that
// arrived before; the caller's query must go on from there.
func (s *session) read(ctx context.Context, upTo int64, query func() step) error {
	for {
		retry := false
		err := s.readers.Do(ctx, func(ctx context.Context, c *conn, fresh bool) (bool, error) {
			usable, err := s.readOn(ctx, c, upTo, query())
			retry = !usable && !fresh && ctx.Err() == nil
			return usable, err
		})
		if !retry {
			return err
		}
	}
}

func (s *session) readOn(ctx context.Context, c *conn, upTo int64, query step) (usable bool, err error) {
	sql := s.db.sql
	steps := []step{{statement: sql.beginRead}}
	if c.proxied {
		steps = append(steps, step{statement: sql.tune})
	}
	if upTo > 0 {
		steps = append(steps, step{statement: sql.stored, row: func(columns [][]byte) error {
			var stored int64
			if err := decodeInts(columns, &stored); err != nil {
				return err
			}
			if stored < upTo {
				return fmt.Errorf("the server is behind what it acknowledged: it holds versions up to %d where %d was stored", stored, upTo)
			}
			return nil
		}})
	}
	steps = append(steps, query, step{statement: sql.commit})
	completed, err := c.run(ctx, steps)
	if completed == len(steps) {
		return true, err // nil, or a callback's
	}
	return c.rollback(ctx), explain(err)
}

// Newest reads keys in pages.
func (s *session) Newest(ctx context.Context, from, end []byte, upTo int64, fn func(*backend.Version) error) error {
	pages := sqlstore.NewPages(firstKeys)
	position := bytes.Clone(from)
	if position == nil {
		position = []byte{}
	}
	for {
		rows, size := 0, 0
		row := func(columns [][]byte) error {
			v := &backend.Version{}
			if err := decodeInts(columns, &v.ID, &v.Rev, &v.Create, &v.Version, &v.Lease); err != nil {
				return err
			}
			var err error
			if v.Deleted, err = decodeBool(columns[5]); err != nil {
				return err
			}
			v.Key = bytes.Clone(columns[6])
			rows++
			size += len(v.Key) + 48
			position = append(append(position[:0], v.Key...), 0) // the next possible key
			return fn(v)
		}
		err := s.read(ctx, upTo, func() step {
			params := [][]byte{position, int8Param(upTo), int8Param(int64(pages.Limit() - rows))}
			if end == nil {
				return step{statement: s.db.sql.newestFrom, params: params, row: row}
			}
			return step{statement: s.db.sql.newest, params: append(params, end), row: row}
		})
		if err != nil || rows < pages.Limit() {
			return scanned(err)
		}
		pages.Read(rows, size)
	}
}

// Scan reads versions in pages.
func (s *session) Scan(ctx context.Context, after, upTo int64, values bool, fn func(*backend.Version) error) error {
	pages := sqlstore.NewPages(firstRows)
	for {
		rows, size := 0, 0
		row := func(columns [][]byte) error {
			v := &backend.Version{}
			if err := decodeInts(columns, &v.ID, &v.Rev, &v.Sub, &v.Prev, &v.Create, &v.Version, &v.Lease); err != nil {
				return err
			}
			var err error
			if v.Deleted, err = decodeBool(columns[7]); err != nil {
				return err
			}
			v.Key = bytes.Clone(columns[8])
			if values {
				v.Value = bytes.Clone(columns[9])
			}
			rows++
			size += len(v.Key) + len(v.Value) + 72
			after = v.ID
			return fn(v)
		}
		err := s.read(ctx, upTo, func() step {
			query := s.db.sql.scan
			if values {
				query = s.db.sql.scanValues
			}
			return step{statement: query, params: [][]byte{int8Param(after), int8Param(upTo), int8Param(int64(pages.Limit() - rows))}, row: row}
		})
		if err != nil || rows < pages.Limit() {
			return scanned(err)
		}
		pages.Read(rows, size)
	}
}

// scanned turns the early end of a scan into success.
func scanned(err error) error {
	if errors.Is(err, backend.ErrStop) {
		return nil
	}
	return err
}

func (s *session) Next(ctx context.Context, id int64) (foundID, revision int64, found bool, err error) {
	err = s.read(ctx, 0, func() step {
		return step{statement: s.db.sql.next, params: [][]byte{int8Param(id)}, row: func(columns [][]byte) error {
			found = true
			return decodeInts(columns, &foundID, &revision)
		}}
	})
	return foundID, revision, found, err
}

func (s *session) Values(ctx context.Context, ids []int64, fn func(position int, value []byte)) error {
	for first := 0; first < len(ids); first += valuesAtOne {
		some := ids[first:min(first+valuesAtOne, len(ids))]
		if err := s.someValues(ctx, some, func(position int, value []byte) { fn(first+position, value) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) someValues(ctx context.Context, ids []int64, fn func(position int, value []byte)) error {
	waiting := make(map[int64][]int, len(ids)) // positions by id
	for position, id := range ids {
		waiting[id] = append(waiting[id], position)
	}
	err := s.read(ctx, 0, func() step {
		left := make([]int64, 0, len(waiting))
		for id := range waiting {
			left = append(left, id)
		}
		return step{statement: s.db.sql.values, params: [][]byte{int8ArrayParam(left)}, row: func(columns [][]byte) error {
			var id int64
			if err := decodeInts(columns, &id); err != nil {
				return err
			}
			value := bytes.Clone(columns[1])
			for _, position := range waiting[id] {
				fn(position, value)
			}
			delete(waiting, id)
			return nil
		}}
	})
	if err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	for id := range waiting {
		return &backend.Missing{ID: id}
	}
	return nil
}

func (s *session) Leases(ctx context.Context, fn func(backend.Lease) error) error {
	last := int64(-1 << 63)
	for {
		rows := 0
		err := s.read(ctx, 0, func() step {
			return step{statement: s.db.sql.leases, params: [][]byte{int8Param(last), int8Param(firstKeys)}, row: func(columns [][]byte) error {
				lease := backend.Lease{}
				if err := decodeInts(columns, &lease.ID, &lease.TTL, &lease.Deadline); err != nil {
					return err
				}
				rows++
				last = lease.ID
				return fn(lease)
			}}
		})
		if err != nil || rows < firstKeys {
			return scanned(err)
		}
	}
}
