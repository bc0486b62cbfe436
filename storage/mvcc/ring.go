package mvcc

import (
	"sort"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// event is one change, as watches and history see it.
type event struct {
	rev     int64
	id      int64 // row in the backend
	key     string
	deleted bool
	now     *item // nil when deleted
	kv      *mvccpb.KeyValue
	before  *item // what the key was before this revision, nil if absent

	plain, full *mvccpb.Event // made when the first watcher asks; see hub
}

// hasPrevious says whether the event has a previous value. As in etcd, one that
// creates its key has none, even if its transaction deleted the key first.
func (e *event) hasPrevious() bool {
	return e.before != nil && (e.deleted || e.now.create != e.rev)
}

// ring is the newest events of one backend, bounded in number and bytes, in
// order. The hub's lock protects it.
type ring struct {
	from      int64 // every event of the backend from this revision on is here
	events    []*event
	bytes     int64
	maxBytes  int64
	maxEvents int
}

// append adds the events of one batch and drops the oldest whole revisions
// that are too much.
func (r *ring) append(events []*event) {
	for i := range events {
		r.bytes += events[i].size()
	}
	r.events = append(r.events, events...)
	drop := 0
	for drop < len(r.events) && (r.bytes > r.maxBytes || len(r.events)-drop > r.maxEvents) {
		rev := r.events[drop].rev
		for drop < len(r.events) && r.events[drop].rev == rev {
			r.bytes -= r.events[drop].size()
			r.events[drop] = nil
			drop++
		}
		r.from = rev + 1
	}
	r.events = r.events[drop:]
}

func (e *event) size() int64 {
	return int64(len(e.key)) + int64(len(e.kv.GetValue())) + 256
}

// since is the events from rev on, or false if older ones were dropped.
func (r *ring) since(rev int64) ([]*event, bool) {
	if rev < r.from {
		return nil, false
	}
	start := sort.Search(len(r.events), func(i int) bool { return r.events[i].rev >= rev })
	return r.events[start:], true
}

// reset empties the ring: events from rev on will follow.
func (r *ring) reset(rev int64) {
	r.events, r.bytes, r.from = nil, 0, rev
}
