package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/mattn/go-sqlite3"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// insertSizes are the numbers of rows that one INSERT takes; a batch is cut
// into the largest that fit.
var insertSizes = [...]int{32, 8, 1}

const (
	versionColumns = "id, rev, sub, prev, create_rev, version, lease, deleted, key, value"
	columnCount    = 10
	// deleteSize is how many rows one DELETE of a compaction removes.
	deleteSize = 16
)

type writeStatements struct {
	begin, commit, rollback *statement
	advance                 *statement
	insert                  [len(insertSizes)]*statement
	putLease, deleteLease   *statement
	deleteMany, deleteOne   *statement
	vacuum                  *statement
}

func (w *writeStatements) prepare(c *conn) error {
	var failed error
	prepare := func(query string) *statement {
		s, err := c.prepare(query)
		failed = errors.Join(failed, err)
		return s
	}
	w.begin = prepare("BEGIN IMMEDIATE")
	w.commit = prepare("COMMIT")
	w.rollback = prepare("ROLLBACK")
	// The epoch and the last ID are compared by the database itself, within
	// the transaction: a session whose time is over, or whose memory is not
	// what is stored, violates the CHECK on last_rev.
	w.advance = prepare(`UPDATE meta SET
		last_rev = CASE WHEN epoch = ?1 AND last_id = ?2 THEN ?3 ELSE -1 END,
		last_id  = ?4,
		floor    = CASE WHEN ?5 > 0 THEN ?5 ELSE floor END,
		swept    = CASE WHEN ?6 > 0 THEN ?6 ELSE swept END`)
	for i, rows := range insertSizes {
		one := "(" + strings.Repeat("?,", columnCount-1) + "?)"
		w.insert[i] = prepare("INSERT INTO versions (" + versionColumns + ") VALUES " +
			strings.Repeat(one+",", rows-1) + one)
	}
	w.putLease = prepare("INSERT OR REPLACE INTO leases (id, ttl, deadline) VALUES (?,?,?)")
	w.deleteLease = prepare("DELETE FROM leases WHERE id = ?")
	w.deleteMany = prepare("DELETE FROM versions WHERE id IN (" + strings.Repeat("?,", deleteSize-1) + "?)")
	w.deleteOne = prepare("DELETE FROM versions WHERE id = ?")
	w.vacuum = prepare(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages))
	return failed
}

// Apply stores the batch in one transaction.
func (s *session) Apply(_ context.Context, batch *backend.Batch) error {
	if err := s.sql.begin.run(); err != nil {
		return &backend.Rejected{Err: fmt.Errorf("begin: %w", err)}
	}
	if err := s.fill(batch); err != nil {
		if rollback := s.sql.rollback.run(); rollback != nil && !s.writer.raw.AutoCommit() {
			return errors.Join(err, rollback)
		}
		return err
	}
	if err := s.sql.commit.run(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.checkpoint.wrote(batch)
	return nil
}

// fill runs the batch's statements; any error of it means that nothing is
// stored once the transaction is rolled back.
func (s *session) fill(batch *backend.Batch) error {
	w := &s.sql
	w.advance.set(0, s.state.Epoch, batch.AfterID, batch.LastRev, batch.LastID(), batch.Floor, batch.Swept)
	if err := w.advance.run(); err != nil {
		var failed sqlite3.Error
		if errors.As(err, &failed) && failed.ExtendedCode == sqlite3.ErrConstraintCheck {
			return backend.ErrFenced
		}
		return &backend.Rejected{Err: fmt.Errorf("advance meta: %w", err)}
	}
	if err := w.insertAll(batch.Versions); err != nil {
		return &backend.Rejected{Err: fmt.Errorf("insert: %w", err)}
	}
	for _, lease := range batch.PutLeases {
		w.putLease.set(0, lease.ID, lease.TTL, lease.Deadline)
		if err := w.putLease.run(); err != nil {
			return &backend.Rejected{Err: fmt.Errorf("store lease: %w", err)}
		}
	}
	for _, id := range batch.DeleteLeases {
		w.deleteLease.set(0, id)
		if err := w.deleteLease.run(); err != nil {
			return &backend.Rejected{Err: fmt.Errorf("delete lease: %w", err)}
		}
	}
	if err := w.sweep(batch.Sweep); err != nil {
		return &backend.Rejected{Err: fmt.Errorf("compact: %w", err)}
	}
	return nil
}

func (w *writeStatements) insertAll(versions []backend.Version) error {
	for i, rows := range insertSizes {
		for len(versions) >= rows {
			insert := w.insert[i]
			for row := range rows {
				v := &versions[row]
				var value driver.Value
				if !v.Deleted {
					value = notNil(v.Value)
				}
				insert.set(row*columnCount, v.ID, v.Rev, v.Sub, v.Prev, v.Create, v.Version, v.Lease, flag(v.Deleted), v.Key, value)
			}
			if err := insert.run(); err != nil {
				return err
			}
			versions = versions[rows:]
		}
	}
	return nil
}

func (w *writeStatements) sweep(ids []int64) error {
	for len(ids) >= deleteSize {
		for i, id := range ids[:deleteSize] {
			w.deleteMany.args[i].Value = id
		}
		if err := w.deleteMany.run(); err != nil {
			return err
		}
		ids = ids[deleteSize:]
	}
	for _, id := range ids {
		w.deleteOne.set(0, id)
		if err := w.deleteOne.run(); err != nil {
			return err
		}
	}
	return nil
}

// notNil keeps an empty value from becoming NULL.
func notNil(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}
