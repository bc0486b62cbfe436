package mysql

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// Pages of a scan begin with so many rows.
const (
	firstKeys   = 512
	firstRows   = 256
	valuesAtOne = 1024 // ids in one query of Values
)

// selection is what one read asks for: statements with columns, each ended by
// a semicolon, and what gets their rows.
type selection struct {
	sql  string
	args []driver.NamedValue
	row  func(result int, columns []driver.Value) error
}

// read runs a selection in a transaction of its own. upTo is what the database
// must have stored at least: behind a proxy, or after a failover to a replica
// that was behind, a shorter answer would look like a complete one.
//
// A connection that turns out to be broken is replaced once: it may have been
// idle since a restart of the server. row has been called for the rows that
// arrived before; the caller's selection must go on from there.
func (s *session) read(ctx context.Context, upTo int64, choose func() selection) error {
	for {
		retry := false
		err := s.readers.Do(ctx, func(ctx context.Context, c *conn, fresh bool) (bool, error) {
			usable, err := readOn(ctx, c, upTo, choose())
			retry = !usable && !fresh && ctx.Err() == nil
			return usable, err
		})
		if !retry {
			return err
		}
	}
}

func readOn(ctx context.Context, c *conn, upTo int64, choice selection) (usable bool, err error) {
	const stored = "SELECT last_id FROM meta WHERE one = 1; "
	met := false
	err = c.query(ctx, begin+stored+choice.sql+commit, choice.args, func(result int, columns []driver.Value) error {
		if result > 0 {
			return choice.row(result-1, columns)
		}
		var last int64
		if err := integers(columns, &last); err != nil {
			return err
		}
		if last < upTo {
			return fmt.Errorf("the server is behind what it acknowledged: it holds versions up to %d where %d was stored", last, upTo)
		}
		met = true
		return nil
	})
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return true, refused.err
	case err == nil && !met:
		return true, errors.New("table meta has no row: it is damaged; restore a backup")
	case err != nil:
		return c.rollback(ctx), explain(err)
	}
	return true, nil
}

const newestColumns = "SELECT id, rev, create_rev, version, lease, deleted, `key` FROM versions FORCE INDEX (versions_key) WHERE "

// Newest reads the versions of the range's keys in pages, in the order of the
// index, and passes on the last of each key: a query that picked them in the
// server would have to read the same entries and look each one up again. Where
// a page ends within a key, its newest version is asked for, so that one with
// thousands of versions costs no more than a page.
func (s *session) Newest(ctx context.Context, from, end []byte, upTo int64, fn func(*backend.Version) error) error {
	pages := sqlstore.NewPages(firstKeys)
	if from == nil {
		from = []byte{}
	}
	var pending *backend.Version // the last that was read; a newer one of its key may follow
	emit := func() error {
		v := pending
		pending = nil
		if v == nil {
			return nil
		}
		from = append(bytes.Clone(v.Key), 0) // the next possible key
		return fn(v)
	}
	for {
		rows, size := 0, 0
		row := func(_ int, columns []driver.Value) error {
			v := &backend.Version{}
			if err := integers(columns, &v.ID, &v.Rev, &v.Create, &v.Version, &v.Lease, &v.Deleted); err != nil {
				return err
			}
			key, _ := columns[6].([]byte)
			rows++
			size += len(key) + 48
			if pending != nil && bytes.Equal(pending.Key, key) {
				v.Key = pending.Key
				pending = v
				return nil
			}
			v.Key = bytes.Clone(key)
			err := emit()
			pending = v
			return err
		}
		err := s.read(ctx, upTo, func() selection {
			rows, size = 0, 0
			return newestPage(from, end, upTo, pending, pages.Limit(), row)
		})
		if err == nil && rows < pages.Limit() {
			err = emit()
			return scanned(err)
		}
		if err != nil {
			return scanned(err)
		}
		pages.Read(rows, size)
	}
}

// newestPage asks for the newest version of pending's key, if there is a
// pending one, and for the versions of the keys behind it.
func newestPage(from, end []byte, upTo int64, pending *backend.Version, limit int, row func(int, []driver.Value) error) selection {
	var sql strings.Builder
	var values []driver.Value
	bound := " AND id <= " + strconv.FormatInt(upTo, 10)
	if pending != nil {
		sql.WriteString(newestColumns + "`key` = ? AND id > " + strconv.FormatInt(pending.ID, 10) + bound + " ORDER BY id DESC LIMIT 1; ")
		values = append(values, pending.Key)
		from = append(bytes.Clone(pending.Key), 0)
	}
	sql.WriteString(newestColumns + "`key` >= ?")
	values = append(values, from)
	if end != nil {
		sql.WriteString(" AND `key` < ?")
		values = append(values, end)
	}
	sql.WriteString(bound + " ORDER BY `key`, id LIMIT " + strconv.Itoa(limit) + "; ")
	return selection{sql: sql.String(), args: arguments(values...), row: row}
}

// Scan reads versions in pages.
func (s *session) Scan(ctx context.Context, after, upTo int64, values bool, fn func(*backend.Version) error) error {
	pages := sqlstore.NewPages(firstRows)
	value := "NULL"
	if values {
		value = "value"
	}
	for {
		rows, size := 0, 0
		row := func(_ int, columns []driver.Value) error {
			v := &backend.Version{}
			if err := integers(columns, &v.ID, &v.Rev, &v.Sub, &v.Prev, &v.Create, &v.Version, &v.Lease, &v.Deleted); err != nil {
				return err
			}
			v.Key, v.Value = cloneBytes(columns[8]), cloneBytes(columns[9])
			rows++
			size += len(v.Key) + len(v.Value) + 72
			after = v.ID
			return fn(v)
		}
		err := s.read(ctx, upTo, func() selection {
			return selection{row: row, sql: fmt.Sprintf("SELECT id, rev, sub, prev, create_rev, version, lease, deleted, `key`, %s FROM versions "+
				"WHERE id > %d AND id <= %d ORDER BY id LIMIT %d; ", value, after, upTo, pages.Limit()-rows)}
		})
		if err != nil || rows < pages.Limit() {
			return scanned(err)
		}
		pages.Read(rows, size)
	}
}

// cloneBytes copies what the driver will overwrite; NULL stays nil.
func cloneBytes(column driver.Value) []byte {
	value, ok := column.([]byte)
	if !ok {
		return nil
	}
	return append(make([]byte, 0, len(value)), value...)
}

// scanned turns the early end of a scan into success.
func scanned(err error) error {
	if errors.Is(err, backend.ErrStop) {
		return nil
	}
	return err
}

func (s *session) Next(ctx context.Context, id int64) (foundID, revision int64, found bool, err error) {
	err = s.read(ctx, 0, func() selection {
		return selection{
			sql: fmt.Sprintf("SELECT id, rev FROM versions WHERE id >= %d ORDER BY id LIMIT 1; ", id),
			row: func(_ int, columns []driver.Value) error {
				found = true
				return integers(columns, &foundID, &revision)
			},
		}
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
	err := s.read(ctx, 0, func() selection {
		sql := []byte("SELECT id, value FROM versions WHERE id IN (-1")
		for id := range waiting {
			sql = strconv.AppendInt(append(sql, ','), id, 10)
		}
		return selection{sql: string(sql) + "); ", row: func(_ int, columns []driver.Value) error {
			var id int64
			if err := integers(columns, &id); err != nil {
				return err
			}
			value := cloneBytes(columns[1])
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
		err := s.read(ctx, 0, func() selection {
			return selection{
				sql: fmt.Sprintf("SELECT id, ttl, deadline FROM leases WHERE id > %d ORDER BY id LIMIT %d; ", last, firstKeys-rows),
				row: func(_ int, columns []driver.Value) error {
					lease := backend.Lease{}
					if err := integers(columns, &lease.ID, &lease.TTL, &lease.Deadline); err != nil {
						return err
					}
					rows++
					last = lease.ID
					return fn(lease)
				},
			}
		})
		if err != nil || rows < firstKeys {
			return scanned(err)
		}
	}
}
