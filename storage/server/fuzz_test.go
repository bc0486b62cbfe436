package server

import (
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

func testLimits() limits { return limits{requestBytes: 1 << 20, txnOps: 128, keyBytes: 2048} }

// FuzzRequests decodes arbitrary bytes as each request and checks it: nothing
// may panic, and what is accepted keeps the rules that a Store relies on.
func FuzzRequests(f *testing.F) {
	put := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("k"), Value: []byte("v")}}}
	nested := &pb.TxnRequest{Success: []*pb.RequestOp{put}, Failure: []*pb.RequestOp{put, {}}}
	for _, seed := range []proto.Message{
		&pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte{0}, SortTarget: 9},
		&pb.DeleteRangeRequest{Key: []byte("a"), RangeEnd: []byte("b")},
		&pb.TxnRequest{Success: []*pb.RequestOp{put, {Request: &pb.RequestOp_RequestTxn{RequestTxn: nested}}}},
		&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte{0}, Filters: []pb.WatchCreateRequest_FilterType{0, 1, 7}},
	} {
		data, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var ranged pb.RangeRequest
		if proto.Unmarshal(data, &ranged) == nil && checkRangeStream(&ranged) == nil && len(ranged.Key) == 0 {
			t.Error("a range without a key was accepted")
		}
		var put pb.PutRequest
		if proto.Unmarshal(data, &put) == nil && testLimits().checkPut(&put) == nil && (len(put.Key) == 0 || len(put.Key) > 2048) {
			t.Errorf("a put of a key of %d bytes was accepted", len(put.Key))
		}
		var watch pb.WatchCreateRequest
		if proto.Unmarshal(data, &watch) == nil {
			if request, err := createRequest(&watch); err == nil && (len(request.Key) == 0 || request.StartRevision < 0) {
				t.Errorf("the watch %+v was accepted", request)
			}
		}
		var txn pb.TxnRequest
		if proto.Unmarshal(data, &txn) == nil && testLimits().checkTxn(&txn) == nil {
			for _, changes := range possibleChanges(&txn) {
				if key, twice := changedTwice(changes); twice {
					t.Errorf("a transaction that changes %q twice was accepted: %v", key, &txn)
				}
			}
		}
	})
}

// FuzzOverlaps compares the check of overlapping puts and deletes with trying
// out every way that nested transactions can turn out.
func FuzzOverlaps(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{1, 0, 1, 9, 2, 0, 0, 3, 1, 1, 2, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		list := opsFrom(&data, 0)
		_, _, err := changedKeys(list)
		accepted := err == nil
		if !accepted {
			return // nested branches that exclude each other may be refused, as in etcd
		}
		for _, changes := range possibleChanges(&pb.TxnRequest{Success: list}) {
			if key, twice := changedTwice(changes); twice {
				t.Errorf("operations that change %q twice were accepted: %v", key, list)
			}
		}
	})
}

// opsFrom makes operations over a few keys out of bytes.
func opsFrom(data *[]byte, depth int) []*pb.RequestOp {
	next := func() byte {
		if len(*data) == 0 {
			return 0
		}
		b := (*data)[0]
		*data = (*data)[1:]
		return b
	}
	key := func() []byte { return []byte{'a' + next()%6} }
	var ops []*pb.RequestOp
	for range next() % 4 {
		switch kind := next() % 8; {
		case kind < 3:
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key()}}})
		case kind < 6 || depth > 2:
			r := &pb.DeleteRangeRequest{Key: key()}
			switch next() % 4 {
			case 0:
				r.RangeEnd = key()
			case 1:
				r.RangeEnd = []byte{0}
			}
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}})
		default:
			nested := &pb.TxnRequest{Success: opsFrom(data, depth+1), Failure: opsFrom(data, depth+1)}
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: nested}})
		}
	}
	return ops
}

// possibleChanges lists, for each way that the compares can turn out, the
// writes that are then executed.
func possibleChanges(r *pb.TxnRequest) [][]*pb.RequestOp {
	var all [][]*pb.RequestOp
	for _, list := range [][]*pb.RequestOp{r.GetSuccess(), r.GetFailure()} {
		ways := [][]*pb.RequestOp{nil}
		for _, op := range list {
			choices := [][]*pb.RequestOp{{op}}
			if nested := op.GetRequestTxn(); nested != nil {
				choices = possibleChanges(nested)
			}
			if len(ways)*len(choices) > 1000 {
				return nil // too many to try out
			}
			var extended [][]*pb.RequestOp
			for _, way := range ways {
				for _, choice := range choices {
					extended = append(extended, append(slices.Clone(way), choice...))
				}
			}
			ways = extended
		}
		all = append(all, ways...)
	}
	return all
}

// changedTwice looks for a put of a key that is put or deleted again.
func changedTwice(ops []*pb.RequestOp) (key string, twice bool) {
	seen := map[string]bool{}
	for _, op := range ops {
		if put := op.GetRequestPut(); put != nil {
			if key := string(put.Key); seen[key] {
				return key, true
			}
			seen[string(put.Key)] = true
		}
	}
	for _, op := range ops {
		r := op.GetRequestDeleteRange()
		if r == nil {
			continue
		}
		for key := range seen {
			if covers(string(r.Key), string(r.RangeEnd), key) {
				return key, true
			}
		}
	}
	return "", false
}

func covers(start, end, key string) bool {
	switch end {
	case "":
		return key == start
	case "\x00":
		return key >= start
	}
	return strings.Compare(key, start) >= 0 && key < end
}
