package server

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/pkg/v3/adt"
)

// checkOverlaps refuses a list of operations that could change one key twice,
// whichever way its nested transactions turn out, since a key changes at most
// once in a revision.
func checkOverlaps(ops []*pb.RequestOp) error {
	if len(ops) == 0 || len(ops) == 1 && ops[0].GetRequestTxn() == nil {
		return nil // what Kubernetes sends
	}
	_, _, err := changedKeys(ops)
	return err
}

// changedKeys returns the keys that the operations put and the ranges that
// they delete. It is etcd's checkIntervals (server/etcdserver/api/v3rpc/key.go)
// with one difference: a delete up to the end of the key space (range_end is
// one zero byte) counts as one here. etcd overlooks it, and then reports a put
// and a delete of one key at one revision.
func changedKeys(ops []*pb.RequestOp) (map[string]struct{}, adt.IntervalTree, error) {
	puts := make(map[string]struct{})
	// Deletes of this level come first: puts of lower levels are checked against them.
	deletes := deletedRanges(ops)
	for _, op := range ops {
		nested := op.GetRequestTxn()
		if nested == nil {
			continue
		}
		putsThen, deletesThen, err := changedKeys(nested.Success)
		if err != nil {
			return nil, nil, err
		}
		putsElse, deletesElse, err := changedKeys(nested.Failure)
		if err != nil {
			return nil, nil, err
		}
		for key := range putsThen {
			if err := addPut(puts, deletes, key); err != nil {
				return nil, nil, err
			}
		}
		for key := range putsElse {
			// Only one of the two lists is executed, so both may put a key.
			if _, both := putsThen[key]; both {
				continue
			}
			if err := addPut(puts, deletes, key); err != nil {
				return nil, nil, err
			}
		}
		deletes.Union(deletesThen, adt.NewStringAffineInterval("\x00", ""))
		deletes.Union(deletesElse, adt.NewStringAffineInterval("\x00", ""))
	}
	for _, op := range ops {
		if put := op.GetRequestPut(); put != nil {
			if err := addPut(puts, deletes, string(put.Key)); err != nil {
				return nil, nil, err
			}
		}
	}
	return puts, deletes, nil
}

func deletedRanges(ops []*pb.RequestOp) adt.IntervalTree {
	deletes := adt.NewIntervalTree()
	for _, op := range ops {
		request := op.GetRequestDeleteRange()
		if request == nil {
			continue
		}
		interval := adt.NewStringAffinePoint(string(request.Key))
		switch end := string(request.RangeEnd); end {
		case "":
		case "\x00":
			interval = adt.NewStringAffineInterval(string(request.Key), "")
		default:
			interval = adt.NewStringAffineInterval(string(request.Key), end)
		}
		deletes.Insert(interval, struct{}{})
	}
	return deletes
}

func addPut(puts map[string]struct{}, deletes adt.IntervalTree, key string) error {
	if _, again := puts[key]; again || deletes.Intersects(adt.NewStringAffinePoint(key)) {
		return rpctypes.ErrGRPCDuplicateKey
	}
	puts[key] = struct{}{}
	return nil
}
