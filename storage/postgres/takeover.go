package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// takeover is the database's side of taking the ownership, on the connection
// that will write.
type takeover struct{ session *session }

func (t *takeover) meta() string { return quoteIdentifier(t.session.db.schema) + ".meta" }

// ReadOwner reads the row as committed, without waiting for locks.
func (t *takeover) ReadOwner(ctx context.Context) (sqlstore.Owner, error) {
	rows, err := t.session.writer.text(ctx, "SELECT owner, beats, term_ms FROM "+t.meta()+" WHERE one = 1")
	if err != nil {
		return sqlstore.Owner{}, err
	}
	if len(rows) != 1 {
		return sqlstore.Owner{}, fmt.Errorf("table %s has no row: it is damaged; restore a backup", t.meta())
	}
	numbers, err := parseInts(rows[0][1:])
	if err != nil {
		return sqlstore.Owner{}, err
	}
	return sqlstore.Owner{Identity: rows[0][0], Beats: numbers[0], Term: time.Duration(numbers[1]) * time.Millisecond}, nil
}

// Replace raises the epoch. A transaction of a former session that is still
// open (its connection is half dead, say) holds the row's lock; it is found by
// that lock rather than by a remembered process number, which behind a pooler
// would be somebody else's, and its server process is ended.
func (t *takeover) Replace(ctx context.Context, seen sqlstore.Owner) (bool, error) {
	for {
		replaced, err := t.replace(ctx, seen)
		var failed *pgconn.PgError
		if !errors.As(err, &failed) || failed.Code != codeLockNotAvailable {
			return replaced, err
		}
		_, err = t.session.writer.text(ctx, fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_locks
			WHERE relation = %s::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND mode = 'RowExclusiveLock' AND granted AND pid <> pg_backend_pid()`, quoteLiteral(t.meta())))
		if err != nil {
			return false, fmt.Errorf("end the session that holds a lock on %s: %w", t.meta(), explain(err))
		}
	}
}

func (t *takeover) replace(ctx context.Context, seen sqlstore.Owner) (bool, error) {
	s := t.session
	sql := s.db.sql
	raise := &statement{
		sql: "UPDATE " + t.meta() + ` SET epoch = epoch + 1, owner = $1, beats = beats + 1, term_ms = $2
			WHERE one = 1 AND owner = $3 AND beats = $4`,
		params: []uint32{oidText, oidInt8, oidText, oidInt8},
	}
	// The lock timeout of sql.secure is made for batches; here one is shorter.
	impatient := &statement{sql: "SELECT set_config('lock_timeout', '1000', true)"}
	steps := []step{
		{statement: sql.beginWrite},
		{statement: sql.secure, params: [][]byte{[]byte(s.synchronousCommit)}},
		{statement: impatient},
		{statement: raise, params: [][]byte{[]byte(s.db.self.Encode()), int8Param(s.db.settings.Term.Milliseconds()), []byte(seen.Identity), int8Param(seen.Beats)}},
		{statement: sql.commit},
	}
	if _, err := s.writer.run(ctx, steps); err != nil {
		s.writer.rollback(ctx)
		return false, err
	}
	if warned := s.writer.warned; warned != nil {
		return false, fmt.Errorf("the new epoch may not be durable: %s", oneLine(warned.Message))
	}
	return steps[3].affected == 1, nil
}

// readState reads what is stored, after the epoch was raised in a committed
// transaction: nothing of an older session can change it any more.
func (t *takeover) readState(ctx context.Context) (backend.State, error) {
	rows, err := t.session.writer.text(ctx, "SELECT owner, epoch, last_rev, last_id, floor, swept FROM "+t.meta()+" WHERE one = 1")
	if err != nil {
		return backend.State{}, err
	}
	if len(rows) != 1 || rows[0][0] != t.session.db.self.Encode() {
		return backend.State{}, backend.ErrFenced
	}
	n, err := parseInts(rows[0][1:])
	if err != nil {
		return backend.State{}, err
	}
	return backend.State{Epoch: n[0], LastRev: n[1], LastID: n[2], Floor: n[3], Swept: n[4]}, nil
}

func parseInts(columns []string) ([]int64, error) {
	numbers := make([]int64, len(columns))
	for i, column := range columns {
		n, err := strconv.ParseInt(column, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the meta row holds %q: it is damaged; restore a backup", column)
		}
		numbers[i] = n
	}
	return numbers, nil
}
