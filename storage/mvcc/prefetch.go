package mvcc

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// prefetch reads, on the client's own goroutine, the values that evaluating
// the transaction will probably need, so that the writer finds them in the
// cache: previous values that are asked for or watched, values that are
// compared or read. What it misses, the writer reads itself.
func (s *shard) prefetch(ctx context.Context, r *pb.TxnRequest) error {
	t := s.tree()
	var missing []*item
	need := func(key []byte) {
		if i := t.get(stringOf(key)); i != nil && i.value.Load() == nil {
			missing = append(missing, i)
		}
	}
	succeeds := true
	for _, c := range r.Compare {
		if len(c.RangeEnd) > 0 {
			continue
		}
		if c.Target == pb.Compare_VALUE {
			need(c.Key)
			continue
		}
		i := t.get(stringOf(c.Key))
		if i == nil {
			i = &absentItem
		}
		succeeds = succeeds && holds(c, compareNumber(c, i))
	}
	watched := s.hub.wantsPrevious(s.index)
	for _, op := range branch(r, succeeds) {
		switch request := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			if q := request.RequestRange; len(q.RangeEnd) == 0 && q.Revision == 0 && !q.CountOnly && !q.KeysOnly {
				need(q.Key)
			}
		case *pb.RequestOp_RequestPut:
			if q := request.RequestPut; watched || q.PrevKv || q.IgnoreValue {
				need(q.Key)
			}
		case *pb.RequestOp_RequestDeleteRange:
			if q := request.RequestDeleteRange; len(q.RangeEnd) == 0 && (watched || q.PrevKv) {
				need(q.Key)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	// An item may be compacted away between the look at the index and the
	// read; the writer will look again.
	if _, err := s.values(ctx, missing); err != nil && !isMissing(err) {
		return err
	}
	return nil
}
