package server

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// limits are the sizes that a request is checked against. The checks are those
// of etcd's server/etcdserver/api/v3rpc/key.go, in its order, so that a request
// with several faults is refused for the same one.
type limits struct {
	requestBytes int
	txnOps       int
	keyBytes     int
}

// raftEnvelopeBytes is what etcd's InternalRaftRequest adds to a request:
// etcd compares the size of the whole with its limit.
const raftEnvelopeBytes = 19

func (l limits) checkSize(request proto.Message) error {
	if proto.Size(request)+raftEnvelopeBytes > l.requestBytes {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}

func checkRange(r *pb.RangeRequest) error {
	if len(r.GetKey()) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	if _, ok := pb.RangeRequest_SortOrder_name[int32(r.SortOrder)]; !ok {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	if _, ok := pb.RangeRequest_SortTarget_name[int32(r.SortTarget)]; !ok {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

func checkRangeStream(r *pb.RangeRequest) error {
	if err := checkRange(r); err != nil {
		return err
	}
	byKey := r.SortOrder == pb.RangeRequest_NONE ||
		r.SortTarget == pb.RangeRequest_KEY && r.SortOrder == pb.RangeRequest_ASCEND
	if !byKey {
		return status.Error(codes.Unimplemented, "RangeStream does not support custom sort orders")
	}
	if r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0 {
		return status.Error(codes.Unimplemented, "RangeStream does not support revision filters")
	}
	return nil
}

func (l limits) checkPut(r *pb.PutRequest) error {
	if len(r.GetKey()) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	if r.IgnoreValue && len(r.Value) != 0 {
		return rpctypes.ErrGRPCValueProvided
	}
	if r.IgnoreLease && r.Lease != 0 {
		return rpctypes.ErrGRPCLeaseProvided
	}
	if len(r.Key) > l.keyBytes {
		return errKeyTooLong(len(r.Key), l.keyBytes)
	}
	return nil
}

func checkDelete(r *pb.DeleteRangeRequest) error {
	if len(r.GetKey()) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

func (l limits) checkTxn(r *pb.TxnRequest) error {
	if err := l.checkTxnOps(r, l.txnOps); err != nil {
		return err
	}
	// Overlaps come last, so that the number of operations is known to be small.
	if err := checkOverlaps(r.Success); err != nil {
		return err
	}
	return checkOverlaps(r.Failure)
}

func (l limits) checkTxnOps(r *pb.TxnRequest, maxOps int) error {
	ops := max(len(r.GetCompare()), len(r.GetSuccess()), len(r.GetFailure()))
	if ops > maxOps {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, compare := range r.GetCompare() {
		if len(compare.GetKey()) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	for _, list := range [2][]*pb.RequestOp{r.GetSuccess(), r.GetFailure()} {
		for _, op := range list {
			if err := l.checkOp(op, maxOps-ops); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l limits) checkOp(op *pb.RequestOp, maxOps int) error {
	switch request := op.GetRequest().(type) {
	case *pb.RequestOp_RequestRange:
		return checkRange(request.RequestRange)
	case *pb.RequestOp_RequestPut:
		return l.checkPut(request.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return checkDelete(request.RequestDeleteRange)
	case *pb.RequestOp_RequestTxn:
		return l.checkTxnOps(request.RequestTxn, maxOps)
	default: // an empty operation
		return rpctypes.ErrGRPCKeyNotFound
	}
}
