package server

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// kvService answers etcdserverpb.KV.
type kvService struct {
	pb.UnsafeKVServer
	store   Store
	headers headers
	limits  limits
}

func (s *kvService) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	response, err := s.store.Range(ctx, r)
	if err != nil {
		return nil, toStatus(err)
	}
	s.headers.fill(response.Header)
	return response, nil
}

func (s *kvService) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	if err := s.limits.checkPut(r); err != nil {
		return nil, err
	}
	if err := s.limits.checkSize(r); err != nil {
		return nil, err
	}
	response, err := s.one(ctx, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}})
	if err != nil {
		return nil, toStatus(err)
	}
	put := response.Responses[0].GetResponsePut()
	put.Header = response.Header
	s.headers.fill(put.Header)
	return put, nil
}

func (s *kvService) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if err := checkDelete(r); err != nil {
		return nil, err
	}
	if err := s.limits.checkSize(r); err != nil {
		return nil, err
	}
	response, err := s.one(ctx, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}})
	if err != nil {
		return nil, toStatus(err)
	}
	deleted := response.Responses[0].GetResponseDeleteRange()
	deleted.Header = response.Header
	s.headers.fill(deleted.Header)
	return deleted, nil
}

// one runs a transaction of one operation.
func (s *kvService) one(ctx context.Context, op *pb.RequestOp) (*pb.TxnResponse, error) {
	return s.store.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{op}})
}

func (s *kvService) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := s.limits.checkTxn(r); err != nil {
		return nil, err
	}
	if !readOnly(r) {
		if err := s.limits.checkSize(r); err != nil {
			return nil, err
		}
	}
	response, err := s.store.Txn(ctx, r)
	if err != nil {
		return nil, toStatus(err)
	}
	s.headers.fill(response.Header)
	return response, nil
}

// readOnly is etcd's IsTxnReadonly: such a transaction is not proposed to
// raft, so its size is not limited.
func readOnly(r *pb.TxnRequest) bool {
	for _, list := range [2][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range list {
			if op.GetRequestRange() == nil {
				return false
			}
		}
	}
	return true
}

func (s *kvService) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	response, err := s.store.Compact(ctx, r)
	if err != nil {
		return nil, toStatus(err)
	}
	s.headers.fill(response.Header)
	return response, nil
}
