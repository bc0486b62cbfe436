package mvcc

import (
	"bytes"
	"cmp"
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// comparePath decides all compares of a transaction, nested ones included, on
// the state before it, as etcd does: the first is the transaction's own, those
// of the nested transactions of the chosen branch follow in order.
func (sn *snapshot) comparePath(ctx context.Context, txn *pb.TxnRequest) ([]bool, error) {
	succeeded, err := sn.compareAll(ctx, txn.Compare)
	if err != nil {
		return nil, err
	}
	path := []bool{succeeded}
	for _, op := range branch(txn, succeeded) {
		nested, ok := op.Request.(*pb.RequestOp_RequestTxn)
		if !ok || nested.RequestTxn == nil {
			continue
		}
		below, err := sn.comparePath(ctx, nested.RequestTxn)
		if err != nil {
			return nil, err
		}
		path = append(path, below...)
	}
	return path, nil
}

// branch is the operations that run.
func branch(txn *pb.TxnRequest, succeeded bool) []*pb.RequestOp {
	if succeeded {
		return txn.Success
	}
	return txn.Failure
}

func (sn *snapshot) compareAll(ctx context.Context, compares []*pb.Compare) (bool, error) {
	for _, c := range compares {
		holds, err := sn.compare(ctx, c)
		if err != nil || !holds {
			return false, err
		}
	}
	return true, nil
}

func (sn *snapshot) compare(ctx context.Context, c *pb.Compare) (bool, error) {
	if len(c.RangeEnd) == 0 && c.Target != pb.Compare_VALUE && len(sn.trees) == 1 && !sn.newer {
		// What nearly every transaction of Kubernetes' asks.
		i := sn.trees[0].get(stringOf(c.Key))
		if i == nil {
			i = &absentItem
		}
		return holds(c, compareNumber(c, i)), nil
	}
	lists, _, err := sn.list(ctx, spanOf(c.Key, c.RangeEnd), sn.rev, 0)
	if err != nil {
		return false, err
	}
	found := false
	for i, items := range lists {
		found = found || len(items) > 0
		if c.Target == pb.Compare_VALUE {
			kvs, err := sn.shards[i].values(ctx, items)
			if err != nil {
				return false, err
			}
			for _, kv := range kvs {
				if !holds(c, bytes.Compare(kv.Value, c.GetValue())) {
					return false, nil
				}
			}
			continue
		}
		for _, item := range items {
			if !holds(c, compareNumber(c, item)) {
				return false, nil
			}
		}
	}
	if found {
		return true, nil
	}
	// A key that does not exist has no value to compare; its numbers are 0.
	return c.Target != pb.Compare_VALUE && holds(c, compareNumber(c, &absentItem)), nil
}

// absentItem has the numbers of a key that does not exist. Nothing changes it.
var absentItem item

func compareNumber(c *pb.Compare, i *item) int {
	switch c.Target {
	case pb.Compare_CREATE:
		return cmp.Compare(i.create, c.GetCreateRevision())
	case pb.Compare_MOD:
		return cmp.Compare(i.mod, c.GetModRevision())
	case pb.Compare_VERSION:
		return cmp.Compare(i.version, c.GetVersion())
	case pb.Compare_LEASE:
		return cmp.Compare(i.lease, c.GetLease())
	}
	return 0
}

func holds(c *pb.Compare, result int) bool {
	switch c.Result {
	case pb.Compare_EQUAL:
		return result == 0
	case pb.Compare_NOT_EQUAL:
		return result != 0
	case pb.Compare_GREATER:
		return result > 0
	case pb.Compare_LESS:
		return result < 0
	}
	return true
}

// oneValue reads the answer of one item.
func (sn *snapshot) oneValue(ctx context.Context, i *item) (*mvccpb.KeyValue, error) {
	kvs, err := sn.shards[0].values(ctx, []*item{i})
	if err != nil {
		return nil, err
	}
	return kvs[0], nil
}
