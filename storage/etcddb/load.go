package etcddb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// pageSize is how many keys are read at a time.
const pageSize = 2000

// page reads everything of [from, end) as it was at an etcd revision.
func page(ctx context.Context, client *clientv3.Client, from, end string, revision int64, keysOnly bool, fn func(*mvccpb.KeyValue) error) error {
	options := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithRev(revision), clientv3.WithLimit(pageSize)}
	if keysOnly {
		options = append(options, clientv3.WithKeysOnly())
	}
	for {
		answer, err := client.Get(ctx, from, options...)
		if err != nil {
			return err
		}
		for _, kv := range answer.Kvs {
			if err := fn(kv); err != nil {
				return err
			}
		}
		if !answer.More {
			return nil
		}
		from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}

// everything is the end of a range that has no end.
const everything = "\x00"

// oldest is the lowest etcd revision that can still be read, at most newest.
func oldest(ctx context.Context, client *clientv3.Client, newest int64) (int64, error) {
	low, high := int64(0), newest // low is compacted, high is not
	for next := int64(1); low+1 < high; next = low + (high-low)/2 {
		_, err := client.Get(ctx, metaKey, clientv3.WithRev(next), clientv3.WithCountOnly())
		switch {
		case err == nil:
			high = next
		case errors.Is(err, rpctypes.ErrCompacted):
			low = next
		default:
			return 0, fmt.Errorf("find out what the etcd has compacted: %w", err)
		}
	}
	return high, nil
}

// adopt makes the index of an etcd that no batch of ours was ever stored in, as
// it is at a revision. Nothing is written: its keys have etcd's own numbers,
// and IDs in the order of these.
func adopt(ctx context.Context, client *clientv3.Client, at int64) (*index, error) {
	x := newIndex()
	var keys []*mvccpb.KeyValue
	err := page(ctx, client, "\x00", everything, at, true, func(kv *mvccpb.KeyValue) error {
		if !isOurs(kv.Key) {
			keys = append(keys, kv)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the etcd's keys: %w", err)
	}
	x.meta = meta{adopted: at, keys: int64(len(keys))}
	x.clock = x.meta.clock()
	slices.SortFunc(keys, func(a, b *mvccpb.KeyValue) int {
		return cmp.Or(cmp.Compare(a.ModRevision, b.ModRevision), cmp.Compare(string(a.Key), string(b.Key)))
	})
	for i, kv := range keys {
		x.add(string(kv.Key), adopted(kv, int64(i+1)))
	}
	x.revision = at
	return x, nil
}

// clock is what stands for one before the first batch. An etcd that was used
// before has no history that could be told in our numbers.
func (m *meta) clock() clock {
	c := clock{lastRev: m.adopted, lastID: m.keys, swept: m.keys, seen: m.adopted}
	if m.adopted > 1 {
		c.floor = m.adopted + 1
	}
	return c
}

func adopted(kv *mvccpb.KeyValue, id int64) record {
	return record{
		id: id, rev: kv.ModRevision, create: kv.CreateRevision, version: kv.Version,
		lease: kv.Lease, at: kv.ModRevision,
	}
}

// found is a key of the state that loading begins with.
type found struct {
	kv      *mvccpb.KeyValue // nil: there is no such key
	sidecar *record          // nil: it has none
}

// load makes the index of an etcd that is ours, from its state at a revision
// on; the rest of its history is to be followed. IDs of adopted keys, which are
// nowhere stored, stay what they were in a former index.
func load(ctx context.Context, client *clientv3.Client, m meta, metaAt, at int64, former *index) (*index, error) {
	x := newIndex()
	x.meta, x.metaAt, x.clock = m, metaAt, m.clock()
	keys := map[string]*found{}
	err := page(ctx, client, "\x00", everything, at, true, func(kv *mvccpb.KeyValue) error {
		if !isOurs(kv.Key) {
			keys[string(kv.Key)] = &found{kv: kv}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the etcd's keys: %w", err)
	}
	err = page(ctx, client, Prefix, prefixEnd, at, false, func(kv *mvccpb.KeyValue) error {
		name := string(kv.Key)
		switch {
		case name == clockKey:
			x.clockAt = kv.ModRevision
			return x.clock.decode(kv.Value)
		case strings.HasPrefix(name, leasePrefix):
			return x.followLease(name, kv.Value, false)
		case strings.HasPrefix(name, sidecarPrefix):
			key, r, err := decodeSidecar(name, kv.Value, kv.ModRevision)
			if err != nil {
				return err
			}
			if keys[key] == nil {
				keys[key] = &found{}
			}
			keys[key].sidecar = &r
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the store's own keys of the etcd: %w", err)
	}
	if err := x.begin(ctx, client, keys, at, former); err != nil {
		return nil, err
	}
	x.revision = at
	return x, x.lose(ctx, client, at)
}

// lose finds out whether somebody else has compacted the etcd further than the
// engine knows. Then the state that loading begins with is the oldest that can
// be told.
func (x *index) lose(ctx context.Context, client *clientv3.Client, at int64) error {
	if at <= x.meta.adopted {
		return nil
	}
	answer, err := client.Get(ctx, compactedKey)
	if err != nil {
		return fmt.Errorf("find out who has compacted the etcd: %w", err)
	}
	ours := int64(0)
	if len(answer.Kvs) == 1 {
		if err := decode(compactedKey, answer.Kvs[0].Value, &ours); err != nil {
			return err
		}
	}
	if ours < at {
		x.lost = x.clock.lastRev + 1
	}
	return nil
}

// begin puts the state that loading begins with into the index.
func (x *index) begin(ctx context.Context, client *clientv3.Client, keys map[string]*found, at int64, former *index) error {
	type numbered struct {
		key string
		record
	}
	var all []numbered
	var natives []*mvccpb.KeyValue
	for key, f := range keys {
		if f.sidecar != nil {
			all = append(all, numbered{key, *f.sidecar})
		}
		switch {
		case f.sidecar == nil && f.kv.ModRevision <= x.meta.adopted:
			natives = append(natives, f.kv)
		case f.kv != nil && (f.sidecar == nil || f.sidecar.at != f.kv.ModRevision):
			// Others put it, and no batch up to here has given it numbers;
			// one of those to be followed may have.
			x.pending = append(x.pending, backend.Change{Mark: f.kv.ModRevision, Key: f.kv.Key})
		case f.kv == nil && !f.sidecar.deleted:
			x.pending = append(x.pending, backend.Change{Mark: at, Key: []byte(key), Deleted: true})
		}
	}
	slices.SortFunc(natives, func(a, b *mvccpb.KeyValue) int {
		return cmp.Or(cmp.Compare(a.ModRevision, b.ModRevision), cmp.Compare(string(a.Key), string(b.Key)))
	})
	for i, kv := range natives {
		id := int64(i + 1)
		if former != nil {
			c := former.find(string(kv.Key))
			if c == nil || c.records[0].at != kv.ModRevision {
				continue // compaction took it
			}
			id = c.records[0].id
		}
		all = append(all, numbered{string(kv.Key), adopted(kv, id)})
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.id, b.id) })
	for _, n := range all {
		x.add(n.key, n.record)
	}
	slices.SortFunc(x.pending, func(a, b backend.Change) int {
		return cmp.Or(cmp.Compare(a.Mark, b.Mark), cmp.Compare(string(a.Key), string(b.Key)))
	})
	for i := range x.pending {
		c := &x.pending[i]
		if c.Deleted {
			continue
		}
		answer, err := client.Get(ctx, string(c.Key), clientv3.WithRev(at))
		if err != nil || len(answer.Kvs) != 1 {
			return fmt.Errorf("read a value that others put: %w", err)
		}
		c.Value, c.Lease = answer.Kvs[0].Value, answer.Kvs[0].Lease
	}
	return nil
}

// forgetSwept drops what compaction took already: etcd has it until it compacts
// itself.
func (x *index) forgetSwept() {
	for _, r := range slices.Clone(x.byID) {
		if r.removed || r.id > x.clock.swept {
			continue
		}
		records := r.chain.records
		if i := slices.Index(records, r); i > 0 {
			for _, older := range slices.Clone(records[:i]) {
				x.remove(older)
			}
		}
	}
}
