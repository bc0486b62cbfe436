package backup

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
)

const (
	// revisionGap is left free above everything that is known of the old
	// store, and revisionsPerSecond for each second since the backup was
	// taken: ten times what the fastest backend has been measured to write.
	revisionGap        = 1 << 30
	revisionsPerSecond = 200_000
)

// StartAbove is the revision at which a store goes on that is restored from a
// backup: above everything that the old store can have shown, and above known,
// what is known to have been shown.
func StartAbove(header Header, known int64) int64 {
	since := max(0, time.Since(header.Taken))
	return max(header.Revision, known) + revisionGap + int64(since.Seconds())*revisionsPerSecond
}

// Target is the databases that a backup is restored into. Nobody else uses them
// meanwhile.
type Target struct {
	// Backends are those of the topology, the default one first.
	Backends []Backend
	// Route is the index of a key's backend.
	Route func(key string) int
	// Above is a revision that a store in this place may have shown.
	Above int64
	// Changing, if not nil, is called once everything was checked, right
	// before the first change.
	Changing func() error
	// Replace says that what the backends hold is to be deleted; without it
	// they must be empty.
	Replace bool
}

// Backend is one database that the caller owns, with its name.
type Backend struct {
	Name    string
	Session backend.Session
	// KeepsKeys says that what is there can't be deleted by a restore: an
	// etcd, where it may be somebody else's.
	KeepsKeys bool
	// Renew, if not nil, empties the database by making a new one, whose
	// session it returns.
	Renew func(context.Context) (backend.Session, error)
}

// NotEmptyError says that a backend holds something.
type NotEmptyError struct {
	Backend string
	// Stays says that Replace does not help.
	Stays bool
}

func (e *NotEmptyError) Error() string {
	if e.Stays {
		return fmt.Sprintf("the backend %q is an etcd that is not empty, and a restore does not delete what is there", e.Backend)
	}
	return fmt.Sprintf("the backend %q is not empty", e.Backend)
}

// Restored is what a restore has done.
type Restored struct {
	Summary
	// Start is the revision that the restored store is at; what is below it
	// is compacted.
	Start int64 `json:"start"`
	// ByBackend is how many keys went where.
	ByBackend map[string]int64 `json:"byBackend"`
}

// Restore reads the backup twice: once to check all of it and whether the
// target takes it, and once to write it. open opens it from its beginning. An
// error of the first reading, and a *NotEmptyError, mean that nothing was
// changed; after any other the target holds a part and must be restored again.
func Restore(ctx context.Context, open func() (io.ReadCloser, error), target Target) (Restored, error) {
	target.Backends = slices.Clone(target.Backends)
	r := &restore{target: target, lanes: map[int64]map[int]bool{}}
	if err := r.plan(open); err != nil {
		return r.done, err
	}
	renew, err := r.look(ctx)
	if err != nil {
		return r.done, err
	}
	if target.Changing != nil {
		if err := target.Changing(); err != nil {
			return r.done, err
		}
	}
	for i, b := range r.target.Backends {
		if renew[i] {
			session, err := b.Renew(ctx)
			if err != nil {
				return r.done, fmt.Errorf("empty the backend %q: %w", b.Name, err)
			}
			r.target.Backends[i].Session = session
		}
		w := newWriter(r.target.Backends[i], r.done.Start)
		r.writers = append(r.writers, w)
		if err := w.clear(ctx); err != nil {
			return r.done, fmt.Errorf("empty the backend %q: %w", w.name, err)
		}
	}
	return r.done, r.fill(ctx, open)
}

// restore is the state of a Restore.
type restore struct {
	target  Target
	done    Restored
	leases  []Lease
	lanes   map[int64]map[int]bool // by lease: the backends of its keys
	writers []*writer
}

// plan checks the file, and whether the target takes every row of it.
func (r *restore) plan(open func() (io.ReadCloser, error)) error {
	file, err := open()
	if err != nil {
		return err
	}
	defer file.Close()
	limits := make([]backend.Limits, len(r.target.Backends))
	for i, b := range r.target.Backends {
		limits[i] = b.Session.Limits()
	}
	r.done.Summary, err = Read(file, Content{
		Row: func(row *mvccpb.KeyValue) error {
			lane := r.target.Route(string(row.Key))
			limit, name := limits[lane], r.target.Backends[lane].Name
			switch {
			case limit.KeyBytes > 0 && len(row.Key) > limit.KeyBytes:
				return fmt.Errorf("the backend %q takes keys of %d bytes at most, and %.60q… has %d", name, limit.KeyBytes, row.Key, len(row.Key))
			case limit.ValueBytes > 0 && len(row.Value) > limit.ValueBytes:
				return fmt.Errorf("the backend %q takes values of %d bytes at most, and that of %q has %d", name, limit.ValueBytes, row.Key, len(row.Value))
			}
			if row.Lease != 0 {
				if r.lanes[row.Lease] == nil {
					r.lanes[row.Lease] = map[int]bool{}
				}
				r.lanes[row.Lease][lane] = true
			}
			return nil
		},
		Lease: func(lease Lease) error {
			r.leases = append(r.leases, lease)
			return nil
		},
	})
	return err
}

// look sees whether the backends are empty or may be emptied, and chooses the
// revision to go on at. renew says which have to be made anew.
func (r *restore) look(ctx context.Context) (renew []bool, err error) {
	newest := r.target.Above
	renew = make([]bool, len(r.target.Backends))
	for i, b := range r.target.Backends {
		newest = max(newest, b.Session.State().LastRev)
		empty, err := isEmpty(ctx, b.Session)
		switch {
		case err != nil:
			return nil, fmt.Errorf("look into the backend %q: %w", b.Name, err)
		case empty:
		case !r.target.Replace || b.KeepsKeys:
			return nil, &NotEmptyError{b.Name, b.KeepsKeys}
		default:
			renew[i] = b.Renew != nil
		}
	}
	r.done.Start = StartAbove(r.done.Header, newest)
	r.done.ByBackend = map[string]int64{}
	return renew, nil
}

// fill writes leases and rows, and publishes them with the last batches: those
// raise the floor.
func (r *restore) fill(ctx context.Context, open func() (io.ReadCloser, error)) error {
	now := time.Now()
	for _, lease := range r.leases {
		row := backend.Lease{ID: lease.ID, TTL: lease.TTL, Deadline: now.Add(time.Duration(lease.Remaining * float64(time.Second))).UnixMilli()}
		for lane, w := range r.writers {
			if lane != 0 && !r.lanes[lease.ID][lane] {
				continue // the first one is every lease's home
			}
			if err := w.lease(ctx, row); err != nil {
				return err
			}
		}
	}
	file, err := open()
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = Read(file, Content{Row: func(row *mvccpb.KeyValue) error {
		w := r.writers[r.target.Route(string(row.Key))]
		r.done.ByBackend[w.name]++
		return w.row(ctx, row)
	}})
	if err != nil {
		return err
	}
	for _, w := range r.writers {
		if err := w.finish(ctx, mvcc.MarkOfFloor(r.done.Start)); err != nil {
			return err
		}
	}
	return nil
}
