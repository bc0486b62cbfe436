package mvcc

import pb "go.etcd.io/etcd/api/v3/etcdserverpb"

// txnKeys is what a transaction touches, in compares and in both branches.
type txnKeys struct {
	spans []span
	bytes int // of what it stores
}

// keysOf collects what a transaction touches. With one backend nobody needs
// the keys of a transaction that writes.
func (s *Store) keysOf(r *pb.TxnRequest) *txnKeys {
	k := &txnKeys{}
	k.collect(r, len(s.shards) > 1 || readOnly(r))
	return k
}

func (k *txnKeys) collect(r *pb.TxnRequest, spans bool) {
	add := func(key, end []byte) {
		if spans {
			k.spans = append(k.spans, spanOf(key, end))
		}
	}
	for _, c := range r.Compare {
		add(c.Key, c.RangeEnd)
	}
	for _, ops := range [2][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			switch request := op.Request.(type) {
			case *pb.RequestOp_RequestRange:
				add(request.RequestRange.GetKey(), request.RequestRange.GetRangeEnd())
			case *pb.RequestOp_RequestPut:
				add(request.RequestPut.GetKey(), nil)
				k.bytes += len(request.RequestPut.GetKey()) + len(request.RequestPut.GetValue())
			case *pb.RequestOp_RequestDeleteRange:
				add(request.RequestDeleteRange.GetKey(), request.RequestDeleteRange.GetRangeEnd())
			case *pb.RequestOp_RequestTxn:
				if request.RequestTxn != nil {
					k.collect(request.RequestTxn, spans)
				}
			}
		}
	}
}

// firstKey is a key of the transaction, to name it by.
func firstKey(r *pb.TxnRequest) []byte {
	if len(r.Compare) > 0 {
		return r.Compare[0].Key
	}
	for _, ops := range [2][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			switch request := op.Request.(type) {
			case *pb.RequestOp_RequestRange:
				return request.RequestRange.GetKey()
			case *pb.RequestOp_RequestPut:
				return request.RequestPut.GetKey()
			case *pb.RequestOp_RequestDeleteRange:
				return request.RequestDeleteRange.GetKey()
			case *pb.RequestOp_RequestTxn:
				if request.RequestTxn != nil {
					return firstKey(request.RequestTxn)
				}
			}
		}
	}
	return nil
}
