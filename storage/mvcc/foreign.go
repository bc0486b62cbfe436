package mvcc

import (
	"github.com/taskctl-dev/taskctl/storage/backend"
)

// foreign is what others have done to the database and no batch has dealt with.
func (s *shard) foreign() []backend.Change {
	box := s.session.Load()
	if box == nil {
		return nil
	}
	if shared, ok := box.Session.(backend.Shared); ok {
		return shared.Foreign()
	}
	return nil
}

// takeForeign gives revisions to what others have done: one to each of their
// transactions, in their order. It stops where the batch is full.
func (b *batch) takeForeign(changes []backend.Change) {
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Mark == changes[0].Mark {
			n++
		}
		if limit := b.shard.limits.Transaction; limit > 0 {
			n = min(n, limit)
		}
		if !b.takeOne(changes[:n]) {
			return
		}
		b.store.Foreign += n
		changes = changes[n:]
	}
}

// takeOne adds one transaction of somebody else's. It reports false if it has
// to wait for the next batch.
func (b *batch) takeOne(changes []backend.Change) bool {
	for {
		w := b.newWriter(0)
		for _, c := range changes {
			if c.Deleted {
				w.delete(pointSpan(string(c.Key)))
			} else {
				w.put(string(c.Key), c.Value, c.Lease)
			}
		}
		if b.admits(w.changes) != nil {
			w.rollback()
			return false
		}
		first := len(b.store.Versions)
		if _, drawn := w.finish(); drawn {
			for i := range b.store.Versions[first:] {
				b.store.Versions[first+i].Mark = changes[0].Mark
			}
			return true
		}
		w.rollback()
	}
}
