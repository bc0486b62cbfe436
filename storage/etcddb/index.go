package etcddb

import (
	"slices"
	"sort"
	"sync"

	"github.com/google/btree"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// record is one version of a key. What it says never changes; removed is set
// when compaction has taken it.
type record struct {
	chain   *chain
	id      int64
	rev     int64
	sub     int64
	prev    int64
	create  int64
	version int64
	lease   int64
	at      int64 // the etcd revision of the change itself
	deleted bool
	removed bool
	foreign bool // others made the change
}

// chain is a key's versions, oldest first.
type chain struct {
	key     string
	records []*record
}

// index is what the versions of all keys are, as of an etcd revision.
type index struct {
	mu     sync.RWMutex
	keys   *btree.BTreeG[*chain]
	byID   []*record // in order; some are removed
	dead   int       // of byID
	leases map[int64]backend.Lease

	meta     meta
	metaAt   int64 // etcd revision of metaKey; 0: there is none yet
	clock    clock
	clockAt  int64 // the same of clockKey
	revision int64 // everything up to this etcd revision is known
	lost     int64 // the floor below which somebody else has compacted; else 0

	pending []backend.Change // by others, without numbers; never changed in place
	notify  func()
	moved   chan struct{} // closed when revision moves, if somebody waits
}

func newIndex() *index {
	return &index{
		keys:   btree.NewG(32, func(a, b *chain) bool { return a.key < b.key }),
		leases: map[int64]backend.Lease{},
	}
}

// The methods below are called with the lock held.

func (x *index) find(key string) *chain {
	found, _ := x.keys.Get(&chain{key: key})
	return found
}

// newest is the key's newest version, or nil.
func (x *index) newest(key string) *record {
	c := x.find(key)
	if c == nil {
		return nil
	}
	return c.records[len(c.records)-1]
}

// add adds a version whose ID is above all others.
func (x *index) add(key string, r record) {
	c := x.find(key)
	if c == nil {
		c = &chain{key: key}
		x.keys.ReplaceOrInsert(c)
	}
	r.chain = c
	kept := &r
	c.records = append(c.records, kept)
	x.byID = append(x.byID, kept)
}

// position is where the first version with at least the ID is in byID.
func (x *index) position(id int64) int {
	return sort.Search(len(x.byID), func(i int) bool { return x.byID[i].id >= id })
}

// get is the version with the ID, or nil.
func (x *index) get(id int64) *record {
	i := x.position(id)
	if i == len(x.byID) || x.byID[i].id != id || x.byID[i].removed {
		return nil
	}
	return x.byID[i]
}

// remove forgets a version.
func (x *index) remove(r *record) {
	if r.removed {
		return
	}
	r.removed = true
	c := r.chain
	c.records = slices.DeleteFunc(c.records, func(other *record) bool { return other == r })
	if len(c.records) == 0 {
		x.keys.Delete(c)
	}
	x.dead++
	if x.dead > 1024 && x.dead > len(x.byID)/2 {
		x.byID = slices.DeleteFunc(slices.Clone(x.byID), func(r *record) bool { return r.removed })
		x.dead = 0
	}
}

// upTo is the chain's newest version with at most the ID, or nil.
func (c *chain) upTo(id int64) *record {
	for _, r := range slices.Backward(c.records) {
		if r.id <= id {
			return r
		}
	}
	return nil
}

// versionOf makes the engine's form of a version, without its value.
func (r *record) versionOf() *backend.Version {
	return &backend.Version{
		ID: r.id, Rev: r.rev, Sub: r.sub, Prev: r.prev, Create: r.create,
		Version: r.version, Lease: r.lease, Deleted: r.deleted, Key: []byte(r.chain.key),
	}
}

// settle drops pending changes that the numbers given to them by now cover.
func (x *index) settle(dealt func(*backend.Change) bool) {
	if slices.ContainsFunc(x.pending, func(c backend.Change) bool { return dealt(&c) }) {
		x.pending = slices.DeleteFunc(slices.Clone(x.pending), func(c backend.Change) bool { return dealt(&c) })
	}
}

// move says that everything up to an etcd revision is known.
func (x *index) move(revision int64) {
	if revision > x.revision {
		x.revision = revision
	}
	if x.moved != nil {
		close(x.moved)
		x.moved = nil
	}
}

// seen is the etcd revision up to which no change by others waits, once the
// first changes of pending are dealt with.
func (x *index) seen(dealt int) int64 {
	if dealt < len(x.pending) {
		return x.pending[dealt].Mark - 1
	}
	return max(x.revision, x.clock.seen)
}

// state is what the engine is told.
func (x *index) state(epoch int64) backend.State {
	return backend.State{Epoch: epoch, LastRev: x.clock.lastRev, LastID: x.clock.lastID, Floor: x.clock.floor, Swept: x.clock.swept}
}
