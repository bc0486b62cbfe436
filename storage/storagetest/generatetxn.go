package storagetest

import (
	"bytes"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// txnRequest makes a transaction: often one of Kubernetes' shape, else any.
func (g *generator) txnRequest(depth int) *pb.TxnRequest {
	if depth == 0 && g.chance(40) {
		return g.guardedWrite()
	}
	r := &pb.TxnRequest{}
	for range g.random.IntN(4) {
		r.Compare = append(r.Compare, g.compare())
	}
	for range g.random.IntN(4) {
		r.Success = append(r.Success, g.op(depth))
	}
	for range g.random.IntN(4) {
		r.Failure = append(r.Failure, g.op(depth))
	}
	return r
}

// guardedWrite is what kube-apiserver sends: put or delete if the revision is
// what was read, else get.
func (g *generator) guardedWrite() *pb.TxnRequest {
	key := g.key()
	compare := &pb.Compare{
		Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_ModRevision{ModRevision: pick(g, 0, 0, g.someRevision())},
	}
	write := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: key, Value: g.value(), Lease: g.lease()},
	}}
	if g.chance(30) {
		write = &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: key},
		}}
	}
	get := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}
	return &pb.TxnRequest{
		Compare: []*pb.Compare{compare},
		Success: []*pb.RequestOp{write},
		Failure: []*pb.RequestOp{get},
	}
}

func (g *generator) compare() *pb.Compare {
	c := &pb.Compare{Key: g.key(), Result: pb.Compare_CompareResult(g.random.IntN(4))}
	if g.chance(25) {
		c.Key, c.RangeEnd = g.keyRange()
	}
	c.Target = pb.Compare_CompareTarget(g.random.IntN(5))
	switch c.Target {
	case pb.Compare_VERSION:
		c.TargetUnion = &pb.Compare_Version{Version: g.random.Int64N(4)}
	case pb.Compare_CREATE:
		c.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: pick(g, 0, g.someRevision())}
	case pb.Compare_MOD:
		c.TargetUnion = &pb.Compare_ModRevision{ModRevision: pick(g, 0, g.someRevision())}
	case pb.Compare_VALUE:
		c.TargetUnion = &pb.Compare_Value{Value: g.value()}
	case pb.Compare_LEASE:
		c.TargetUnion = &pb.Compare_Lease{Lease: g.lease()}
	}
	if g.chance(3) {
		c.TargetUnion = nil
	}
	return c
}

func (g *generator) op(depth int) *pb.RequestOp {
	switch n := g.random.IntN(100); {
	case n < 35:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: g.putRequest()}}
	case n < 60:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: g.deleteInTxn()}}
	case n < 85 || depth >= 2:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: g.rangeRequest()}}
	case n < 99:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: g.txnRequest(depth + 1)}}
	}
	return &pb.RequestOp{}
}

// deleteInTxn never deletes up to the end of the key space: etcd overlooks
// that such a delete overlaps a put of the same transaction and answers with
// two changes of a key at one revision, which the service refuses.
func (g *generator) deleteInTxn() *pb.DeleteRangeRequest {
	r := g.deleteRequest()
	if bytes.Equal(r.RangeEnd, []byte{0}) {
		r.RangeEnd = []byte("zzz")
	}
	return r
}
