package mvcc

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// readOnly says whether a transaction can only read, whatever its compares say.
func readOnly(txn *pb.TxnRequest) bool {
	for _, ops := range [2][]*pb.RequestOp{txn.Success, txn.Failure} {
		for _, op := range ops {
			switch request := op.Request.(type) {
			case *pb.RequestOp_RequestPut, *pb.RequestOp_RequestDeleteRange:
				return false
			case *pb.RequestOp_RequestTxn:
				if request.RequestTxn != nil && !readOnly(request.RequestTxn) {
					return false
				}
			}
		}
	}
	return true
}

// executor runs one transaction on a snapshot; the writer is nil in one that
// can only read.
type executor struct {
	ctx      context.Context
	snapshot *snapshot
	writer   *writer
	path     []bool
}

// txn evaluates a transaction as part of the batch. When it fails, the batch
// is as before.
func (b *batch) txn(ctx context.Context, request *pb.TxnRequest) (*pb.TxnResponse, error) {
	for {
		sn := b.snapshot()
		path, err := sn.comparePath(ctx, request)
		if err != nil {
			return nil, err
		}
		x := &executor{ctx: ctx, snapshot: sn, path: path}
		if err := x.check(request); err != nil {
			return nil, err
		}
		x.writer, x.path = b.newWriter(sn.rev), path
		response, err := x.run(request)
		if err != nil {
			x.writer.rollback()
			return nil, err
		}
		if err := b.admits(x.writer.changes); err != nil {
			x.writer.rollback()
			return nil, err
		}
		if rev, drawn := x.writer.finish(); drawn {
			response.Header = &pb.ResponseHeader{Revision: rev}
			return response, nil
		}
		x.writer.rollback()
	}
}

// txn runs a transaction that can only read.
func (sn *snapshot) txn(ctx context.Context, request *pb.TxnRequest) (*pb.TxnResponse, error) {
	path, err := sn.comparePath(ctx, request)
	if err != nil {
		return nil, err
	}
	x := &executor{ctx: ctx, snapshot: sn, path: path}
	if err := x.check(request); err != nil {
		return nil, err
	}
	x.path = path
	response, err := x.run(request)
	if err != nil {
		return nil, err
	}
	response.Header = &pb.ResponseHeader{Revision: sn.rev}
	return response, nil
}

// next takes the outcome of the next transaction's compares off the path.
func (x *executor) next() bool {
	succeeded := x.path[0]
	x.path = x.path[1:]
	return succeeded
}

// check finds what would make the transaction fail before anything is done.
func (x *executor) check(txn *pb.TxnRequest) error {
	for _, op := range branch(txn, x.next()) {
		var err error
		switch request := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			err = x.checkRange(request.RequestRange)
		case *pb.RequestOp_RequestPut:
			err = x.checkPut(request.RequestPut)
		case *pb.RequestOp_RequestTxn:
			if request.RequestTxn != nil {
				err = x.check(request.RequestTxn)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *executor) checkRange(r *pb.RangeRequest) error {
	switch {
	case r == nil || r.Revision == 0:
		return nil
	case r.Revision > x.snapshot.rev:
		return rpctypes.ErrFutureRev
	case r.Revision < x.snapshot.floor:
		return rpctypes.ErrCompacted
	}
	return nil
}

func (x *executor) checkPut(r *pb.PutRequest) error {
	shard := x.snapshot.shards[0]
	if r.Lease != 0 && !shard.lessor.alive(r.Lease) {
		return rpctypes.ErrLeaseNotFound
	}
	if limit := shard.limits.KeyBytes; limit > 0 && len(r.Key) > limit {
		return errTooLong("key", len(r.Key), limit)
	}
	if limit := shard.limits.ValueBytes; limit > 0 && len(r.Value) > limit {
		return errTooLong("value", len(r.Value), limit)
	}
	if (r.IgnoreValue || r.IgnoreLease) && x.snapshot.trees[0].get(stringOf(r.Key)) == nil {
		return rpctypes.ErrKeyNotFound
	}
	return nil
}

// run carries the operations out, in order; each sees what those before it
// did. The headers within are etcd's: a nested transaction's is empty.
func (x *executor) run(txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	succeeded := x.next()
	ops := branch(txn, succeeded)
	response := &pb.TxnResponse{
		Header:    &pb.ResponseHeader{},
		Succeeded: succeeded,
		Responses: make([]*pb.ResponseOp, len(ops)),
	}
	for i, op := range ops {
		one := &pb.ResponseOp{}
		response.Responses[i] = one
		switch request := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			ranged, err := x.ranged(request.RequestRange)
			if err != nil {
				return nil, err
			}
			one.Response = &pb.ResponseOp_ResponseRange{ResponseRange: ranged}
		case *pb.RequestOp_RequestPut:
			put, err := x.put(request.RequestPut)
			if err != nil {
				return nil, err
			}
			one.Response = &pb.ResponseOp_ResponsePut{ResponsePut: put}
		case *pb.RequestOp_RequestDeleteRange:
			deleted, err := x.deleteRange(request.RequestDeleteRange)
			if err != nil {
				return nil, err
			}
			one.Response = &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: deleted}
		case *pb.RequestOp_RequestTxn:
			if request.RequestTxn == nil {
				continue
			}
			nested, err := x.run(request.RequestTxn)
			if err != nil {
				return nil, err
			}
			one.Response = &pb.ResponseOp_ResponseTxn{ResponseTxn: nested}
		}
	}
	return response, nil
}

// now is the snapshot with the transaction's own changes.
func (x *executor) now() *snapshot {
	if x.writer == nil || len(x.writer.changes) == 0 {
		return x.snapshot
	}
	sn := *x.snapshot
	sn.rev = x.writer.rev
	sn.trees = []tree{x.writer.batch.edit.peek()}
	sn.unsaved = append(sn.unsaved[:len(sn.unsaved):len(sn.unsaved)], x.writer.unsaved()...)
	return &sn
}

// unsaved is the transaction's changes as far as history needs them.
func (w *writer) unsaved() []*event {
	events := make([]*event, len(w.changes))
	for i, c := range w.changes {
		events[i] = &event{rev: w.rev, key: c.key, before: c.before}
	}
	return events
}

func (x *executor) ranged(r *pb.RangeRequest) (*pb.RangeResponse, error) {
	sn := x.now()
	response, err := sn.rangeOf(x.ctx, r)
	if err != nil {
		return nil, err
	}
	if x.writer != nil {
		response.Header = x.writer.header(len(x.writer.changes) > 0)
	}
	return response, nil
}

func (x *executor) put(r *pb.PutRequest) (*pb.PutResponse, error) {
	response := &pb.PutResponse{}
	value, lease := r.Value, r.Lease
	if r.IgnoreValue || r.IgnoreLease || r.PrevKv {
		var previous *mvccpb.KeyValue
		if old := x.writer.batch.edit.peek().get(stringOf(r.Key)); old != nil {
			var err error
			if previous, err = x.snapshot.oneValue(x.ctx, old); err != nil {
				return nil, err
			}
		}
		if previous == nil && (r.IgnoreValue || r.IgnoreLease) {
			return nil, rpctypes.ErrKeyNotFound
		}
		if r.IgnoreValue {
			value = previous.Value
		}
		if r.IgnoreLease {
			lease = previous.Lease
		}
		if r.PrevKv {
			response.PrevKv = previous
		}
	}
	x.writer.put(string(r.Key), value, lease)
	response.Header = x.writer.header(true)
	return response, nil
}

func (x *executor) deleteRange(r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	response := &pb.DeleteRangeResponse{}
	s := spanOf(r.Key, r.RangeEnd)
	if r.PrevKv {
		sn := x.now()
		kvs, err := sn.answers(x.ctx, [][]*item{sn.trees[0].list(s, 0)}, false)
		if err != nil {
			return nil, err
		}
		response.PrevKvs = kvs
	}
	response.Deleted = int64(x.writer.delete(s))
	response.Header = x.writer.header(len(x.writer.changes) > 0)
	return response, nil
}
