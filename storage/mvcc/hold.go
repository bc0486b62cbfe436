package mvcc

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// holdPage is how many rows are read from the databases at a time.
const holdPage = 512

// Held is the whole key space at one revision, which stays readable whatever is
// written or compacted meanwhile. It costs the memory of what changes while it
// is held, and the space of what a compaction may not delete.
type Held struct {
	store    *Store
	revision int64
	trees    []tree // by shard
	before   []backend.Lease
	release  func()
}

// Hold pins the newest revision that was acknowledged when it was called, or a
// later one, once it is certain on every backend. The caller releases it.
func (s *Store) Hold(ctx context.Context) (*Held, error) {
	h := &Held{store: s, before: s.lessor.rows()}
	// The pin comes first: what is alive at a later revision is not deleted
	// either.
	release, err := s.Pin(max(s.sequencer.now(), s.sequencer.compacted()))
	if err != nil {
		return nil, err
	}
	h.release = release
	if err := h.cut(ctx); err != nil {
		release()
		return nil, err
	}
	return h, nil
}

// cut takes the trees at a revision. Where a backend is ahead of another's
// pending write, what it has written since is undone out of memory; if that is
// gone already, a later cut will do.
func (h *Held) cut(ctx context.Context) error {
	s := h.store
	lanes, spans := make([]int, len(s.shards)), []span{{open: true}}
	for lane := range lanes {
		lanes[lane] = lane
	}
	for {
		v, err := s.sequencer.view(ctx, lanes, spans, 0)
		if err != nil {
			return err
		}
		h.revision, h.trees = v.rev, v.trees
		complete := true
		for i, lane := range lanes {
			if v.newer {
				var ok bool
				h.trees[i], ok = s.shards[lane].past(v.rev)
				complete = complete && ok
			}
		}
		if complete {
			return nil
		}
	}
}

// Revision is the one that is held.
func (h *Held) Revision() int64 { return h.revision }

// Release ends it; it may be called more than once.
func (h *Held) Release() { h.release() }

// heldItem is an item and where it lies.
type heldItem struct {
	*item
	shard *shard
}

// Rows calls fn for every key's row, in order of mod revisions, and of keys
// within one. fn may keep the row and must not change it. An error of fn ends
// it and is returned.
func (h *Held) Rows(ctx context.Context, fn func(*mvccpb.KeyValue) error) error {
	var items []heldItem
	for i, t := range h.trees {
		t.ascend(span{open: true}, func(found *item) bool {
			items = append(items, heldItem{found, h.store.shards[i]})
			return true
		})
	}
	slices.SortFunc(items, func(a, b heldItem) int {
		return cmp.Or(cmp.Compare(a.mod, b.mod), cmp.Compare(a.key, b.key))
	})
	for page := range slices.Chunk(items, holdPage) {
		if err := h.page(ctx, page, fn); err != nil {
			return err
		}
	}
	return nil
}

// page reads the values of some items, those of each backend together.
func (h *Held) page(ctx context.Context, items []heldItem, fn func(*mvccpb.KeyValue) error) error {
	rows := make([]*mvccpb.KeyValue, len(items))
	for _, s := range h.store.shards {
		var ids []int64
		var positions []int
		for position, i := range items {
			switch cached := i.value.Load(); {
			case i.shard != s:
			case cached != nil:
				rows[position] = &cached.kv
			default:
				ids, positions = append(ids, i.id), append(positions, position)
			}
		}
		if len(ids) == 0 {
			continue
		}
		session, err := s.current()
		if err != nil {
			return err
		}
		// They are read once: the value cache would lose what is used.
		err = session.Values(ctx, ids, func(n int, value []byte) {
			rows[positions[n]] = &newCached(items[positions[n]].item, value).kv
		})
		if err != nil {
			return err
		}
	}
	for _, row := range rows {
		if err := fn(row); err != nil {
			return err
		}
	}
	return nil
}

// HeldLease is a lease and how long it had to live.
type HeldLease struct {
	ID        int64
	TTL       int64 // granted, in seconds
	Remaining time.Duration
}

// Leases are those that exist now, and those that existed when the revision was
// taken: a key may be under one that was revoked since.
func (h *Held) Leases(context.Context) ([]HeldLease, error) {
	found := map[int64]backend.Lease{}
	for _, row := range append(h.before, h.store.lessor.rows()...) {
		found[row.ID] = row
	}
	leases := make([]HeldLease, 0, len(found))
	for _, row := range found {
		leases = append(leases, HeldLease{ID: row.ID, TTL: row.TTL, Remaining: max(0, time.Until(time.UnixMilli(row.Deadline)))})
	}
	slices.SortFunc(leases, func(a, b HeldLease) int { return cmp.Compare(a.ID, b.ID) })
	return leases, nil
}

// rows are all leases as they are stored.
func (l *lessor) rows() []backend.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows := make([]backend.Lease, 0, len(l.leases))
	for _, one := range l.leases {
		rows = append(rows, backend.Lease{ID: one.id, TTL: one.ttl, Deadline: time.Now().Add(time.Until(one.deadline)).UnixMilli()})
	}
	return rows
}
