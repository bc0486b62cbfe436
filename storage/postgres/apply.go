package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// One INSERT takes at most so many rows and bytes; more go into further
	// INSERTs of the same transaction.
	insertRows  = 4096
	insertBytes = 8 << 20
)

// Apply stores the batch in one transaction, in one round trip. ctx is looked
// at before it is sent and not any more: the commit is on its way from then on.
func (s *session) Apply(ctx context.Context, batch *backend.Batch) error {
	if err := ctx.Err(); err != nil {
		return &backend.Rejected{Err: err, Retry: true}
	}
	limits := s.Limits()
	for i := range batch.Versions {
		if v := &batch.Versions[i]; len(v.Key) > limits.KeyBytes || len(v.Value) > limits.ValueBytes {
			return &backend.Rejected{Err: fmt.Errorf("a key of %d and a value of %d bytes are too long for PostgreSQL (%d and %d)",
				len(v.Key), len(v.Value), limits.KeyBytes, limits.ValueBytes)}
		}
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	ctx, cancel := context.WithTimeout(s.ended, s.db.settings.CommitTimeout)
	defer cancel()

	steps, inserts := s.steps(batch)
	completed, err := s.writer.run(ctx, steps)
	if err != nil {
		return s.failed(ctx, completed, len(steps), err)
	}
	if warned := s.writer.warned; warned != nil {
		// The wait for a synchronous standby was cut short: the server says
		// so by a warning only, and calls the commit done.
		return fmt.Errorf("commit: the server warned: %s", oneLine(warned.Message))
	}
	stored := int64(0)
	for i := range inserts {
		stored += steps[firstInsert+i].affected
	}
	if advanced := steps[firstInsert-1].affected; advanced != 1 || stored != int64(len(batch.Versions)) {
		return fmt.Errorf("the server changed %d rows of meta and stored %d of %d versions", advanced, stored, len(batch.Versions))
	}
	return nil
}

// failed says what an error means for the batch.
func (s *session) failed(ctx context.Context, completed, steps int, err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || completed >= steps-1 || isConnectionError(err) {
		return fmt.Errorf("commit: %w", explain(err))
	}
	meaning := rejection(refused)
	if meaning == nil || !s.writer.rollback(ctx) {
		return fmt.Errorf("write: %w", explain(err))
	}
	return meaning
}

// firstInsert is the position of the first INSERT in a batch's steps.
const firstInsert = 3

func (s *session) steps(batch *backend.Batch) (steps []step, inserts int) {
	sql := s.db.sql
	steps = []step{
		{statement: sql.beginWrite},
		{statement: sql.secure, params: [][]byte{[]byte(s.synchronousCommit)}},
		{statement: sql.advance, params: [][]byte{int8Param(s.state.Epoch), int8Param(batch.AfterID), int8Param(batch.LastRev),
			int8Param(batch.LastID()), int8Param(batch.Floor), int8Param(batch.Swept)}},
	}
	for rest := batch.Versions; len(rest) > 0; inserts++ {
		n, bytes := 0, 0
		for n < len(rest) && n < insertRows && (n == 0 || bytes+len(rest[n].Value) <= insertBytes) {
			bytes += len(rest[n].Value)
			n++
		}
		buffers := &s.buffers
		if inserts > 0 {
			buffers = new([columnCount][]byte) // the shared ones are in the first step
		}
		steps = append(steps, step{statement: sql.insert, params: versionArrays(buffers, rest[:n])})
		rest = rest[n:]
	}
	if len(batch.PutLeases) > 0 {
		steps = append(steps, step{statement: sql.putLeases, params: leaseArrays(batch.PutLeases)})
	}
	if len(batch.DeleteLeases) > 0 {
		steps = append(steps, step{statement: sql.deleteLeases, params: [][]byte{int8ArrayParam(batch.DeleteLeases)}})
	}
	if len(batch.Sweep) > 0 {
		steps = append(steps, step{statement: sql.sweep, params: [][]byte{int8ArrayParam(batch.Sweep)}})
	}
	return append(steps, step{statement: sql.commit}), inserts
}

// leaseArrays encodes leases; of two with one ID the later counts, as one
// INSERT must not touch a row twice.
func leaseArrays(leases []backend.Lease) [][]byte {
	last := make(map[int64]int, len(leases))
	for i, lease := range leases {
		last[lease.ID] = i
	}
	var ids, ttls, deadlines []int64
	for i, lease := range leases {
		if last[lease.ID] == i {
			ids, ttls, deadlines = append(ids, lease.ID), append(ttls, lease.TTL), append(deadlines, lease.Deadline)
		}
	}
	return [][]byte{int8ArrayParam(ids), int8ArrayParam(ttls), int8ArrayParam(deadlines)}
}
