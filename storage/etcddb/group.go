package etcddb

import (
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// group is everything that happened at one etcd revision: a batch of ours,
// something else of ours, or a transaction of somebody else's.
type group struct {
	at     int64
	events []*clientv3.Event
}

// groupsOf cuts an answer of a watch, which has whole revisions, in order.
func groupsOf(events []*clientv3.Event) []group {
	var groups []group
	for _, e := range events {
		if n := len(groups); n == 0 || groups[n-1].at != e.Kv.ModRevision {
			groups = append(groups, group{at: e.Kv.ModRevision})
		}
		last := &groups[len(groups)-1]
		last.events = append(last.events, e)
	}
	return groups
}

// follow takes what happened at an etcd revision into the index. The lock is
// held.
func (x *index) follow(g group) error {
	if g.at <= x.revision {
		return nil
	}
	batch := false
	for _, e := range g.events {
		batch = batch || e.Type == clientv3.EventTypePut && string(e.Kv.Key) == clockKey
	}
	var err error
	switch {
	case !batch:
		x.followForeign(g)
	case g.at > x.clockAt:
		err = x.followBatch(g)
	}
	if err != nil {
		return err
	}
	x.move(g.at)
	return nil
}

// followForeign notes what others did. What a batch of ours has overwritten
// since was never seen by anybody.
func (x *index) followForeign(g group) {
	before := len(x.pending)
	for _, e := range g.events {
		if isOurs(e.Kv.Key) {
			continue
		}
		if newest := x.newest(string(e.Kv.Key)); newest != nil && newest.at >= g.at {
			continue
		}
		change := backend.Change{Mark: g.at, Key: e.Kv.Key, Deleted: e.Type == clientv3.EventTypeDelete}
		if !change.Deleted {
			change.Value, change.Lease = e.Kv.Value, e.Kv.Lease
		}
		x.pending = append(x.pending[:len(x.pending):len(x.pending)], change)
	}
	if len(x.pending) > before && x.notify != nil {
		x.notify()
	}
}

// followBatch takes in a batch that this index was not told of by the Apply
// that stored it: one of before it was made, or one whose answer was lost.
func (x *index) followBatch(g group) error {
	type put struct {
		key string
		record
	}
	var puts []put
	for _, e := range g.events {
		name := string(e.Kv.Key)
		deleted := e.Type == clientv3.EventTypeDelete
		switch {
		case name == clockKey:
			if err := x.clock.decode(e.Kv.Value); err != nil {
				return err
			}
			x.clockAt = g.at
		case name == metaKey && !deleted:
			if err := x.meta.decode(e.Kv.Value); err != nil {
				return err
			}
			x.metaAt = g.at
		case strings.HasPrefix(name, sidecarPrefix) && deleted:
			// Compaction took the newest version of the key, and before it
			// all others, which nothing tells of.
			if c := x.find(strings.TrimPrefix(name, sidecarPrefix)); c != nil {
				for _, r := range slices.Clone(c.records) {
					x.remove(r)
				}
			}
		case strings.HasPrefix(name, sidecarPrefix):
			key, r, err := decodeSidecar(name, e.Kv.Value, g.at)
			if err != nil {
				return err
			}
			puts = append(puts, put{key, r})
		case strings.HasPrefix(name, leasePrefix):
			if err := x.followLease(name, e.Kv.Value, deleted); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(puts, func(a, b put) int { return int(a.id - b.id) })
	for _, p := range puts {
		x.add(p.key, p.record)
		x.supersede(p.key, &p.record)
	}
	x.settle(func(c *backend.Change) bool { return c.Mark <= x.clock.seen })
	return nil
}

// supersede drops pending changes of a key that a version has numbers for, or
// has overwritten before anybody saw them.
func (x *index) supersede(key string, r *record) {
	if len(x.pending) == 0 {
		return
	}
	x.settle(func(c *backend.Change) bool {
		return string(c.Key) == key && (c.Mark < r.at || c.Mark == r.at && r.foreign)
	})
}

func (x *index) followLease(name string, value []byte, deleted bool) error {
	id, err := leaseOf(name)
	if err != nil {
		return err
	}
	if deleted {
		delete(x.leases, id)
		return nil
	}
	lease := backend.Lease{ID: id}
	if err := decode(name, value, &lease.TTL, &lease.Deadline); err != nil {
		return err
	}
	x.leases[id] = lease
	return nil
}
