package etcddb

import (
	"strings"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// encodeSidecar is the value beside a key. It speaks of the change that is in
// the same transaction, or, of one that others made before, of its etcd
// revision.
func encodeSidecar(v *backend.Version) string {
	deleted := int64(0)
	if v.Deleted {
		deleted = 1
	}
	return encode(deleted, v.ID, v.Rev, v.Sub, v.Prev, v.Create, v.Version, v.Lease, v.Mark)
}

// decodeSidecar reads a sidecar that was put at an etcd revision. Sidecars of
// deleted keys stay, as tombstones, until compaction takes them.
func decodeSidecar(name string, value []byte, at int64) (key string, r record, err error) {
	var deleted, mark int64
	err = decode(name, value, &deleted, &r.id, &r.rev, &r.sub, &r.prev, &r.create, &r.version, &r.lease, &mark)
	r.deleted = deleted == 1
	r.at = at
	if mark != 0 {
		r.at, r.foreign = mark, true
	}
	return strings.TrimPrefix(name, sidecarPrefix), r, err
}

func recordOf(v *backend.Version, at int64) record {
	r := record{
		id: v.ID, rev: v.Rev, sub: v.Sub, prev: v.Prev, create: v.Create,
		version: v.Version, lease: v.Lease, deleted: v.Deleted, at: at,
	}
	if v.Mark != 0 {
		r.at, r.foreign = v.Mark, true
	}
	return r
}
