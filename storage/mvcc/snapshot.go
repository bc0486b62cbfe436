package mvcc

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// snapshot answers ranges from a consistent cut: a reader's view, or the
// state that a writer has reached within its batch.
type snapshot struct {
	rev    int64 // the present revision: what headers say
	floor  int64
	shards []*shard
	trees  []tree
	// newer says that the trees may hold more than rev.
	newer bool
	// unsaved are the events of the batch that is being made, in order; the
	// trees hold them and the databases don't yet.
	unsaved []*event
	saved   int64 // the newest revision before them
}

// rangeOf answers one range request.
func (sn *snapshot) rangeOf(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	rev := r.Revision
	if rev > sn.rev {
		return nil, rpctypes.ErrFutureRev
	}
	if rev <= 0 {
		rev = sn.rev
	}
	if rev < sn.floor {
		return nil, rpctypes.ErrCompacted
	}
	s := spanOf(r.Key, r.RangeEnd)
	if r.CountOnly {
		_, count, err := sn.list(ctx, s, rev, -1)
		if err != nil {
			return nil, err
		}
		return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: sn.rev}, Count: int64(count)}, nil
	}
	lists, count, err := sn.list(ctx, s, rev, readLimit(r))
	if err != nil {
		return nil, err
	}
	kvs, err := sn.answers(ctx, lists, headersOnly(r))
	if err != nil {
		return nil, err
	}
	return finishRange(kvs, count, sn.rev, r), nil
}

// list finds the span's items at rev: at most limit (0: all, -1: none) for
// each shard, cut to what belongs to the first limit of all of them; and how
// many there are in all.
func (sn *snapshot) list(ctx context.Context, s span, rev int64, limit int) (lists [][]*item, count int, err error) {
	lists = make([][]*item, len(sn.shards))
	for i, shard := range sn.shards {
		t := sn.trees[i]
		if rev != sn.rev || sn.newer {
			past, exact, err := sn.past(ctx, shard, t, s, rev)
			if err != nil {
				return nil, 0, err
			}
			if !exact {
				items, n, err := shard.stored(ctx, s, rev, limit)
				if err != nil {
					return nil, 0, err
				}
				lists[i], count = items, count+n
				continue
			}
			t = past
		}
		count += t.count(s)
		if limit >= 0 {
			lists[i] = t.list(s, limit)
		}
	}
	if limit > 0 && len(lists) > 1 {
		cutLists(lists, limit)
	}
	return lists, count, nil
}

// past finds a tree that holds the span as it was at rev, where memory
// suffices for it.
func (sn *snapshot) past(ctx context.Context, shard *shard, t tree, s span, rev int64) (tree, bool, error) {
	if s.single {
		// The present version is the one at rev if it is not younger.
		if i := t.get(s.from); i != nil && i.mod <= rev {
			return buildTree([]*item{i}), true, nil
		}
	}
	if len(sn.unsaved) > 0 && rev >= sn.saved {
		return undo(t, sn.unsaved, rev), true, nil
	}
	past, ok := shard.past(rev)
	return past, ok, ctx.Err()
}

// undo makes the tree at rev out of a later one. The events, in order, lead
// from a revision that is at most rev to the tree.
func undo(t tree, events []*event, rev int64) tree {
	e := t.edit()
	for i := len(events) - 1; i >= 0 && events[i].rev > rev; i-- {
		if before := events[i].before; before != nil {
			e.set(before)
		} else {
			e.remove(events[i].key)
		}
	}
	return e.tree()
}

// list returns the span's first items; limit 0 means all.
func (t tree) list(s span, limit int) []*item {
	if s.single {
		if i := t.get(s.from); i != nil {
			return []*item{i}
		}
		return nil
	}
	var items []*item
	if limit > 0 {
		items = make([]*item, 0, min(limit, 1024))
	}
	t.ascend(s, func(i *item) bool {
		items = append(items, i)
		return limit == 0 || len(items) < limit
	})
	return items
}

// cutLists shortens the lists to the items that are among the first limit of
// all of them together.
func cutLists(lists [][]*item, limit int) {
	taken := make([]int, len(lists))
	for range limit {
		least := -1
		for i, items := range lists {
			if taken[i] < len(items) && (least < 0 || items[taken[i]].key < lists[least][taken[least]].key) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		taken[least]++
	}
	for i := range lists {
		lists[i] = lists[i][:taken[i]]
	}
}

// answers turns items into answers, in order of keys over all shards.
func (sn *snapshot) answers(ctx context.Context, lists [][]*item, headers bool) ([]*mvccpb.KeyValue, error) {
	answers := make([][]*mvccpb.KeyValue, 0, len(lists))
	for i, items := range lists {
		if len(items) == 0 {
			continue
		}
		if headers {
			kvs := make([]*mvccpb.KeyValue, len(items))
			for j, item := range items {
				kvs[j] = item.header()
			}
			answers = append(answers, kvs)
			continue
		}
		kvs, err := sn.shards[i].values(ctx, items)
		if err != nil {
			return nil, err
		}
		answers = append(answers, kvs)
	}
	switch len(answers) {
	case 0:
		return nil, nil
	case 1:
		return answers[0], nil
	}
	return mergeKVs(answers), nil
}

func mergeKVs(lists [][]*mvccpb.KeyValue) []*mvccpb.KeyValue {
	var merged []*mvccpb.KeyValue
	for {
		least := -1
		for i, kvs := range lists {
			if len(kvs) > 0 && (least < 0 || stringOf(kvs[0].Key) < stringOf(lists[least][0].Key)) {
				least = i
			}
		}
		if least < 0 {
			return merged
		}
		merged = append(merged, lists[least][0])
		lists[least] = lists[least][1:]
	}
}
