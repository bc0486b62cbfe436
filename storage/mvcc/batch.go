package mvcc

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// batch is the state that a writer builds out of several jobs before it asks
// the database to store it. Each job sees what the jobs before it did. Nothing
// of it is visible to anybody else before it is stored.
type batch struct {
	shard  *shard
	ctx    context.Context
	edit   *edit
	rev    int64 // the newest revision drawn for it; 0 if none
	saved  int64 // the store's newest acknowledged revision when it was begun
	events []*event
	store  backend.Batch
	leases []leaseChange
	copied []int64             // leases whose rows the backend did not have before
	force  bool                // ask the database even if there is nothing to store
	keys   map[string]struct{} // of the versions, where a key may be there only once
}

func (s *shard) newBatch(ctx context.Context) *batch {
	return &batch{
		shard: s,
		ctx:   ctx,
		edit:  s.tree().edit(),
		saved: s.sequencer.now(),
		store: backend.Batch{AfterID: s.lastID.Load(), LastRev: s.lastRev},
	}
}

// empty says whether there is nothing to store.
func (b *batch) empty() bool {
	return !b.force && len(b.store.Versions) == 0 && len(b.store.PutLeases) == 0 && len(b.store.DeleteLeases) == 0 &&
		b.store.Floor == 0 && len(b.store.Sweep) == 0 && b.store.Swept == 0 && b.store.Foreign == 0
}

// snapshot is the state that the batch has reached. A transaction of this
// backend that wrote nothing answers with its revision: it is at least what
// was acknowledged anywhere when the batch was begun, and every later write of
// this backend gets a higher one.
func (b *batch) snapshot() *snapshot {
	return &snapshot{
		rev:     max(b.rev, b.shard.sequencer.now()),
		floor:   b.shard.sequencer.compacted(b.shard.index),
		shards:  []*shard{b.shard},
		trees:   []tree{b.edit.peek()},
		unsaved: b.events,
		saved:   b.saved,
	}
}

// change is what a transaction does to one key.
type change struct {
	key      string
	old, now *item // now is nil in a deletion
	before   *item // what the key was before the transaction
}

// writer collects the changes of one transaction under the revision that it
// expects to draw. Another backend may draw it first; then the transaction is
// evaluated again.
type writer struct {
	batch   *batch
	begin   int64
	rev     int64
	changes []change
}

func (b *batch) newWriter(begin int64) *writer {
	return &writer{batch: b, begin: begin, rev: b.shard.sequencer.peek()}
}

// put stores a value under a key.
func (w *writer) put(key string, value []byte, lease int64) {
	old := w.batch.edit.peek().get(key)
	i := &item{key: key, mod: w.rev, create: w.rev, version: 1, lease: lease}
	if old != nil {
		i.key, i.create, i.version = old.key, old.create, old.version+1
	}
	i.id = w.nextID()
	i.value.Store(newCached(i, value))
	w.batch.edit.set(i)
	w.changes = append(w.changes, change{key: i.key, old: old, now: i, before: w.before(old)})
}

// delete removes the span's keys and says how many there were.
func (w *writer) delete(s span) int {
	doomed := w.batch.edit.peek().list(s, 0)
	for _, old := range doomed {
		w.batch.edit.remove(old.key)
		w.changes = append(w.changes, change{key: old.key, old: old, before: w.before(old)})
	}
	return len(doomed)
}

func (w *writer) nextID() int64 {
	return w.batch.store.LastID() + int64(len(w.changes)) + 1
}

// before is what the key was before the transaction, if old is what it is now.
func (w *writer) before(old *item) *item {
	if old == nil || old.mod != w.rev {
		return old
	}
	for _, c := range w.changes {
		if c.now == old {
			return c.before
		}
	}
	return old
}

// header tells the transaction's revision if it has changed something or is
// about to, else the one before it.
func (w *writer) header(changed bool) *pb.ResponseHeader {
	if !changed {
		return &pb.ResponseHeader{Revision: w.begin}
	}
	return &pb.ResponseHeader{Revision: w.rev}
}

// rollback takes the changes out of the batch again.
func (w *writer) rollback() {
	for i := len(w.changes) - 1; i >= 0; i-- {
		if old := w.changes[i].old; old != nil {
			w.batch.edit.set(old)
		} else {
			w.batch.edit.remove(w.changes[i].key)
		}
	}
	w.changes = nil
}

// admits says whether the batch can take the transaction's changes, too:
// errBatchFull if another batch can, or why none can.
func (b *batch) admits(changes []change) error {
	limits := &b.shard.limits
	if limits.Versions == 0 && !limits.KeyOnce || len(changes) == 0 {
		return nil
	}
	have := len(b.store.Versions)
	switch {
	case have > 0 && have+len(changes) > limits.Versions && limits.Versions > 0:
		return errBatchFull
	case limits.Transaction > 0 && len(changes) > limits.Transaction:
		return errTooManyWrites(b.shard.name, len(changes), limits.Transaction)
	}
	if !limits.KeyOnce {
		return nil
	}
	own := make(map[string]struct{}, len(changes))
	for _, c := range changes {
		if _, taken := b.keys[c.key]; taken {
			return errBatchFull
		}
		if _, twice := own[c.key]; twice {
			return errKeyTwice(b.shard.name, c.key)
		}
		own[c.key] = struct{}{}
	}
	return nil
}

// finish draws the revision, if there is something to store, and adds the
// changes to the batch. It returns the revision for the header, or false when
// another backend has drawn the expected one.
func (w *writer) finish() (int64, bool) {
	if len(w.changes) == 0 {
		return w.begin, true
	}
	b := w.batch
	keys := make([]string, len(w.changes))
	for i, c := range w.changes {
		keys[i] = c.key
	}
	if !b.shard.sequencer.draw(b.shard.index, w.rev, keys) {
		return 0, false
	}
	b.rev = w.rev
	b.store.LastRev = w.rev
	for sub, c := range w.changes {
		b.add(c, w.rev, int64(sub))
	}
	if b.shard.limits.KeyOnce {
		if b.keys == nil {
			b.keys = map[string]struct{}{}
		}
		for _, key := range keys {
			b.keys[key] = struct{}{}
		}
	}
	return w.rev, true
}

// add turns a change into a row and an event.
func (b *batch) add(c change, rev, sub int64) {
	version := backend.Version{ID: b.store.LastID() + 1, Rev: rev, Sub: sub, Key: bytesOf(c.key), Deleted: c.now == nil}
	if c.old != nil {
		version.Prev = c.old.id
	}
	e := &event{rev: rev, id: version.ID, key: c.key, now: c.now, before: c.before, deleted: c.now == nil}
	var from, to int64
	if c.old != nil {
		from = c.old.lease
	}
	if c.now != nil {
		kv := &c.now.value.Load().kv
		version.Create, version.Version, version.Lease = c.now.create, c.now.version, c.now.lease
		version.Value = kv.Value
		e.kv = kv
		to = c.now.lease
	} else {
		e.kv = &mvccpb.KeyValue{Key: version.Key, ModRevision: rev}
	}
	if from != to {
		b.leases = append(b.leases, leaseChange{key: c.key, from: from, to: to})
	}
	if to != 0 {
		b.keepLease(to)
	}
	b.store.Versions = append(b.store.Versions, version)
	b.events = append(b.events, e)
}

// keepLease stores the lease's row with the batch if this backend does not have
// it yet: it goes with the first key that is put under it.
func (b *batch) keepLease(id int64) {
	row, missing := b.shard.lessor.missingOn(id, b.shard.index)
	if !missing || slices.Contains(b.copied, id) {
		return
	}
	b.store.PutLeases = append(b.store.PutLeases, row)
	b.copied = append(b.copied, id)
}

// newItems are the live items that the batch made, for the value cache.
func (b *batch) newItems() []*item {
	items := make([]*item, 0, len(b.events))
	for _, e := range b.events {
		if e.now != nil {
			items = append(items, e.now)
		}
	}
	return items
}
