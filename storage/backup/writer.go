package backup

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// batchRows and batchBytes bound a batch where the database has no bound
	// of its own.
	batchRows  = 1000
	batchBytes = 8 << 20
)

// writer writes rows into one backend, in batches.
type writer struct {
	name    string
	session backend.Session
	limits  backend.Limits
	batch   backend.Batch
	bytes   int
	rev     int64 // of the last row
	sub     int64
}

// newWriter makes a writer; last is what the backend's newest revision becomes.
func newWriter(b Backend, last int64) *writer {
	w := &writer{name: b.Name, session: b.Session, limits: b.Session.Limits()}
	w.batch = backend.Batch{AfterID: b.Session.State().LastID, LastRev: last}
	return w
}

// isEmpty says that a backend holds neither versions nor leases.
func isEmpty(ctx context.Context, session backend.Session) (bool, error) {
	_, _, found, err := session.Next(ctx, 1)
	if err != nil || found {
		return false, err
	}
	empty := true
	err = session.Leases(ctx, func(backend.Lease) error {
		empty = false
		return backend.ErrStop
	})
	return empty, err
}

// clear deletes everything that the backend holds.
func (w *writer) clear(ctx context.Context) error {
	err := w.session.Leases(ctx, func(lease backend.Lease) error {
		w.batch.DeleteLeases = append(w.batch.DeleteLeases, lease.ID)
		return nil
	})
	if err != nil {
		return err
	}
	for after, more := int64(0), true; more; {
		more = false
		err := w.session.Scan(ctx, after, w.batch.AfterID, false, func(v *backend.Version) error {
			if len(w.batch.Sweep) == w.rows() {
				more = true
				return backend.ErrStop
			}
			w.batch.Sweep = append(w.batch.Sweep, v.ID)
			after = v.ID
			return nil
		})
		if err != nil {
			return err
		}
		if len(w.batch.Sweep) > 0 || len(w.batch.DeleteLeases) > 0 {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows is how many rows or leases a batch may have.
func (w *writer) rows() int {
	if w.limits.Versions > 0 {
		return min(batchRows, w.limits.Versions)
	}
	return batchRows
}

// lease adds a lease's row.
func (w *writer) lease(ctx context.Context, row backend.Lease) error {
	w.batch.PutLeases = append(w.batch.PutLeases, row)
	if len(w.batch.PutLeases) < w.rows() {
		return nil
	}
	return w.flush(ctx)
}

// row adds a key's row. It replaces none: its history is not in the backup.
func (w *writer) row(ctx context.Context, row *mvccpb.KeyValue) error {
	most := batchBytes
	if w.limits.BatchBytes > 0 {
		most = min(most, w.limits.BatchBytes)
	}
	size := len(row.Key) + len(row.Value)
	if len(w.batch.PutLeases) > 0 || len(w.batch.Versions) > 0 && (len(w.batch.Versions) == w.rows() || w.bytes+size > most) {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.sub++
	if row.ModRevision != w.rev {
		w.rev, w.sub = row.ModRevision, 0
	}
	w.bytes += size
	w.batch.Versions = append(w.batch.Versions, backend.Version{
		ID: w.batch.LastID() + 1, Rev: row.ModRevision, Sub: w.sub, Create: row.CreateRevision, Version: row.Version, Lease: row.Lease,
		Key: row.Key, Value: row.Value,
	})
	return nil
}

// finish stores what is left, and the floor; what is below needs no sweep.
func (w *writer) finish(ctx context.Context, mark int64) error {
	w.batch.Floor, w.batch.Swept = mark, w.batch.LastID()
	return w.flush(ctx)
}

func (w *writer) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.session.Apply(ctx, &w.batch); err != nil {
		return fmt.Errorf("write to the backend %q: %w", w.name, err)
	}
	w.batch = backend.Batch{AfterID: w.batch.LastID(), LastRev: w.batch.LastRev}
	w.bytes = 0
	return nil
}
