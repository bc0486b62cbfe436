package etcddb

import (
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// write is a batch as a transaction of etcd's.
type write struct {
	metaAt, clockAt int64 // what they are compared with
	clock           clock // what it leaves
	compares        []clientv3.Cmp
	operations      []clientv3.Op
}

// prepare makes the transaction of a batch.
func (s *session) prepare(batch *backend.Batch) (*write, error) {
	x := s.index
	x.mu.RLock()
	defer x.mu.RUnlock()
	if batch.AfterID != x.clock.lastID {
		return nil, backend.ErrFenced
	}
	w := &write{metaAt: x.metaAt, clockAt: x.clockAt, clock: x.clock}
	w.compares = []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(metaKey), "=", w.metaAt),
		clientv3.Compare(clientv3.ModRevision(clockKey), "=", w.clockAt),
	}
	if w.metaAt == 0 {
		first := x.meta
		first.epoch = s.epoch
		w.operations = append(w.operations, clientv3.OpPut(metaKey, first.encode()))
	}
	w.clock.lastRev, w.clock.lastID = batch.LastRev, batch.LastID()
	if batch.Floor != 0 {
		w.clock.floor = batch.Floor
	}
	if batch.Swept != 0 {
		w.clock.swept = batch.Swept
	}
	w.clock.seen = x.seen(batch.Foreign)
	w.operations = append(w.operations, clientv3.OpPut(clockKey, w.clock.encode()))
	keys, err := w.versions(x, batch.Versions, len(batch.Versions) <= s.batchVersions())
	if err != nil {
		return nil, &backend.Rejected{Err: err}
	}
	w.leases(batch)
	w.sweep(x, batch.Sweep, keys)
	return w, nil
}

// versions puts values and sidecars. What others did is there already and gets
// its sidecar alone. It returns the keys.
func (w *write) versions(x *index, versions []backend.Version, compare bool) (map[string]bool, error) {
	keys := make(map[string]bool, len(versions))
	for i := range versions {
		v := &versions[i]
		key := string(v.Key)
		switch {
		case isOurs(v.Key) || len(v.Key) == 0:
			return nil, fmt.Errorf("a key that begins with %q is the store's own", Prefix)
		case keys[key]:
			return nil, fmt.Errorf("the key %q is twice in one batch", key)
		}
		keys[key] = true
		w.operations = append(w.operations, clientv3.OpPut(sidecarOf(key), encodeSidecar(v)))
		if v.Mark != 0 {
			continue
		}
		if compare {
			at := int64(0)
			if newest := x.newest(key); newest != nil && !newest.deleted {
				at = newest.at
			}
			w.compares = append(w.compares, clientv3.Compare(clientv3.ModRevision(key), "=", at))
		}
		if v.Deleted {
			w.operations = append(w.operations, clientv3.OpDelete(key))
		} else {
			w.operations = append(w.operations, clientv3.OpPut(key, string(v.Value)))
		}
	}
	return keys, nil
}

// leases puts and deletes leases; etcd takes a key once.
func (w *write) leases(batch *backend.Batch) {
	puts := make(map[int64]backend.Lease, len(batch.PutLeases))
	for _, lease := range batch.PutLeases {
		puts[lease.ID] = lease
	}
	deleted := make(map[int64]bool, len(batch.DeleteLeases))
	for _, id := range batch.DeleteLeases {
		if delete(puts, id); !deleted[id] {
			deleted[id] = true
			w.operations = append(w.operations, clientv3.OpDelete(leaseKey(id)))
		}
	}
	for id, lease := range puts {
		w.operations = append(w.operations, clientv3.OpPut(leaseKey(id), encode(lease.TTL, lease.Deadline)))
	}
}

// sweep removes what compaction takes. Superseded versions go when etcd itself
// is compacted; here go keys whose newest version is taken: tombstones, which
// are sidecars without a value.
func (w *write) sweep(x *index, ids []int64, keys map[string]bool) {
	for _, id := range ids {
		r := x.get(id)
		if r == nil || keys[r.chain.key] || x.newest(r.chain.key) != r {
			continue
		}
		keys[r.chain.key] = true
		w.operations = append(w.operations, clientv3.OpDelete(sidecarOf(r.chain.key)))
		if !r.deleted {
			w.operations = append(w.operations, clientv3.OpDelete(r.chain.key))
		}
	}
}

// nest makes operations fit into a transaction of which etcd takes only limit
// operations on each level, with those of the levels above it counted.
func nest(operations []clientv3.Op, limit, compares int) []clientv3.Op {
	if len(operations) <= limit {
		return operations
	}
	width := max(limit/2, compares)
	size := (len(operations) + width - 1) / width
	nested := make([]clientv3.Op, 0, width)
	for len(operations) > 0 {
		n := min(size, len(operations))
		nested = append(nested, clientv3.OpTxn(nil, nest(operations[:n], limit-width, 0), nil))
		operations = operations[n:]
	}
	return nested
}
