package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// takeover is the database's side of taking the ownership, on the connection
// that will write.
type takeover struct {
	session *session
	former  int64 // the connection that the last owner wrote on
}

// ReadOwner reads the row as committed, without waiting for locks.
func (t *takeover) ReadOwner(ctx context.Context) (sqlstore.Owner, error) {
	var owner sqlstore.Owner
	rows := 0
	err := t.session.writer.query(ctx, begin+"SELECT beats, term_ms, writer, owner FROM meta WHERE one = 1; "+commit, nil, func(_ int, columns []driver.Value) error {
		rows++
		var milliseconds int64
		if err := integers(columns, &owner.Beats, &milliseconds, &t.former); err != nil {
			return err
		}
		owner.Term = time.Duration(milliseconds) * time.Millisecond
		identity, _ := columns[3].([]byte)
		owner.Identity = string(identity)
		return nil
	})
	if err == nil && rows != 1 {
		err = errors.New("table meta has no row: it is damaged; restore a backup")
	}
	return owner, err
}

const (
	// lockPatience is how often a locked row is tried again, lockPause apart,
	// before the last owner's connection is looked for once more; and how often
	// that is done before giving up.
	lockPatience = 20
	lockPause    = 50 * time.Millisecond
)

// Replace raises the epoch. First it ends the connection that the last owner
// wrote on, which may be half dead: a transaction that is open there holds the
// row's lock, and so would one that arrives late and is refused by the fence,
// since nobody would be there to roll it back.
func (t *takeover) Replace(ctx context.Context, seen sqlstore.Owner) (bool, error) {
	if err := t.endFormer(ctx); err != nil {
		return false, err
	}
	pause := time.NewTicker(lockPause)
	defer pause.Stop()
	for try := 1; ; try++ {
		replaced, err := t.replace(ctx, seen)
		if n := number(err); n != errLockTimeout && n != errNoWait {
			return replaced, err
		}
		if try%lockPatience == 0 {
			if try > lockPatience*lockPatience {
				return false, fmt.Errorf("another session keeps the row of table meta locked: %w; end it with KILL", explain(err))
			}
			if err := t.endFormer(ctx); err != nil {
				return false, err
			}
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return false, fmt.Errorf("wait for the lock on table meta: %w", ctx.Err())
		}
	}
}

func (t *takeover) replace(ctx context.Context, seen sqlstore.Owner) (bool, error) {
	const raise = begin + "SELECT one FROM meta WHERE one = 1 FOR UPDATE NOWAIT; " +
		"UPDATE meta SET epoch = epoch + 1, owner = ?, beats = beats + 1, term_ms = ?, writer = CONNECTION_ID() " +
		"WHERE one = 1 AND owner = ? AND beats = ?; " + commit
	d := t.session.db
	found, err := t.session.writer.exec(ctx, raise,
		arguments([]byte(d.self.Encode()), d.settings.Term.Milliseconds(), []byte(seen.Identity), seen.Beats))
	if err != nil {
		t.session.writer.rollback(ctx)
		return false, err
	}
	return found[len(found)-2] == 1, nil
}

// endFormer ends the connection that the last owner wrote on, if it is still a
// connection of this user to this database.
func (t *takeover) endFormer(ctx context.Context) error {
	c := t.session.writer
	row, err := c.row(ctx, "SELECT id FROM information_schema.processlist WHERE id = ? AND id <> CONNECTION_ID() AND db = DATABASE() AND user = SUBSTRING_INDEX(USER(), '@', 1)", t.former)
	if err != nil || row == nil {
		return err
	}
	const errNoSuchThread = 1094
	if _, err := c.exec(ctx, "KILL CONNECTION "+row[0], nil); err != nil && number(err) != errNoSuchThread {
		return fmt.Errorf("end connection %s, on which the last owner wrote: %w", row[0], explain(err))
	}
	return nil
}

// readState reads what is stored, after the epoch was raised in a committed
// transaction: nothing of an older session can change it any more.
func (t *takeover) readState(ctx context.Context) (backend.State, error) {
	var state backend.State
	mine := false
	err := t.session.writer.query(ctx, begin+"SELECT epoch, last_rev, last_id, floor, swept, owner FROM meta WHERE one = 1; "+commit, nil, func(_ int, columns []driver.Value) error {
		owner, _ := columns[5].([]byte)
		mine = string(owner) == t.session.db.self.Encode()
		return integers(columns, &state.Epoch, &state.LastRev, &state.LastID, &state.Floor, &state.Swept)
	})
	if err == nil && !mine {
		err = backend.ErrFenced
	}
	return state, err
}
