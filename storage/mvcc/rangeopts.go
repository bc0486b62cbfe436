package mvcc

import (
	"bytes"
	"math"
	"sort"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// The order, the filters and the limit of a range are etcd's own
// (server/etcdserver/txn/range.go): the same algorithm on the same input, so
// that ties come out alike.

// readLimit is how many keys have to be read for a request; 0 is all. One more
// than the limit tells whether there are more.
func readLimit(r *pb.RangeRequest) int {
	limit := r.Limit
	if !isDefaultOrdering(r.SortTarget, r.SortOrder) || hasRevisionFilters(r) {
		limit = 0
	}
	if limit > 0 && limit < math.MaxInt32 {
		return int(limit) + 1
	}
	return 0
}

func isDefaultOrdering(target pb.RangeRequest_SortTarget, order pb.RangeRequest_SortOrder) bool {
	return order == pb.RangeRequest_NONE ||
		(target == pb.RangeRequest_KEY && order == pb.RangeRequest_ASCEND)
}

func hasRevisionFilters(r *pb.RangeRequest) bool {
	return r.MinModRevision != 0 || r.MaxModRevision != 0 ||
		r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
}

// headersOnly says whether the answer needs no values to be read.
func headersOnly(r *pb.RangeRequest) bool {
	return r.KeysOnly && r.SortTarget != pb.RangeRequest_VALUE
}

func filterKVs(kvs []*mvccpb.KeyValue, r *pb.RangeRequest) []*mvccpb.KeyValue {
	if !hasRevisionFilters(r) {
		return kvs
	}
	kept := kvs[:0]
	for _, kv := range kvs {
		switch {
		case r.MaxModRevision != 0 && kv.ModRevision > r.MaxModRevision,
			r.MinModRevision != 0 && kv.ModRevision < r.MinModRevision,
			r.MaxCreateRevision != 0 && kv.CreateRevision > r.MaxCreateRevision,
			r.MinCreateRevision != 0 && kv.CreateRevision < r.MinCreateRevision:
		default:
			kept = append(kept, kv)
		}
	}
	return kept
}

func sortKVs(kvs []*mvccpb.KeyValue, r *pb.RangeRequest) {
	order := r.SortOrder
	if r.SortTarget != pb.RangeRequest_KEY && order == pb.RangeRequest_NONE {
		order = pb.RangeRequest_ASCEND
	}
	if isDefaultOrdering(r.SortTarget, order) {
		return
	}
	sorter := &kvSorter{kvs: kvs}
	switch r.SortTarget {
	case pb.RangeRequest_KEY:
		sorter.less = func(a, b *mvccpb.KeyValue) bool { return bytes.Compare(a.Key, b.Key) < 0 }
	case pb.RangeRequest_VERSION:
		sorter.less = func(a, b *mvccpb.KeyValue) bool { return a.Version-b.Version < 0 }
	case pb.RangeRequest_CREATE:
		sorter.less = func(a, b *mvccpb.KeyValue) bool { return a.CreateRevision-b.CreateRevision < 0 }
	case pb.RangeRequest_MOD:
		sorter.less = func(a, b *mvccpb.KeyValue) bool { return a.ModRevision-b.ModRevision < 0 }
	case pb.RangeRequest_VALUE:
		sorter.less = func(a, b *mvccpb.KeyValue) bool { return bytes.Compare(a.Value, b.Value) < 0 }
	}
	if order == pb.RangeRequest_DESCEND {
		sort.Sort(sort.Reverse(sorter))
		return
	}
	sort.Sort(sorter)
}

type kvSorter struct {
	kvs  []*mvccpb.KeyValue
	less func(a, b *mvccpb.KeyValue) bool
}

func (s *kvSorter) Len() int           { return len(s.kvs) }
func (s *kvSorter) Less(i, j int) bool { return s.less(s.kvs[i], s.kvs[j]) }
func (s *kvSorter) Swap(i, j int)      { s.kvs[i], s.kvs[j] = s.kvs[j], s.kvs[i] }

// finishRange filters, sorts and cuts what was read into the answer.
func finishRange(kvs []*mvccpb.KeyValue, count int, rev int64, r *pb.RangeRequest) *pb.RangeResponse {
	kvs = filterKVs(kvs, r)
	sortKVs(kvs, r)
	response := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: rev}, Count: int64(count)}
	if r.Limit > 0 && len(kvs) > int(r.Limit) {
		kvs = kvs[:r.Limit]
		response.More = true
	}
	if r.KeysOnly && !headersOnly(r) {
		for i, kv := range kvs {
			kvs[i] = withoutValue(kv)
		}
	}
	response.Kvs = kvs
	return response
}

// withoutValue copies a shared answer without its value.
func withoutValue(kv *mvccpb.KeyValue) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{
		Key:            kv.Key,
		CreateRevision: kv.CreateRevision,
		ModRevision:    kv.ModRevision,
		Version:        kv.Version,
		Lease:          kv.Lease,
	}
}
