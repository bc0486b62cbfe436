package storagetest

import (
	"bytes"
	"math/rand/v2"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// generator makes random requests. It knows what both sides are known to hold
// (revision, floor, leases), so that most requests are about something.
type generator struct {
	random   *rand.Rand
	revision int64 // the newest that an answer showed
	floor    int64 // the newest compacted one
	leases   []int64
	nextID   int64
}

// keyParts make a small key space with what is special in it: a prefix with a
// sibling, the smallest byte, the largest one.
var keyParts = []string{"a", "a/", "a/1", "a/2", "a/2/x", "a0", "b", "b/\x00", "b/\xff", "c", "\x00", "\xff\xff"}

func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

func pick[T any](g *generator, of ...T) T { return of[g.random.IntN(len(of))] }

func (g *generator) key() []byte {
	key := []byte(pick(g, keyParts...))
	if g.chance(40) {
		key = append(key, byte('0'+g.random.IntN(4)))
	}
	if g.chance(1) {
		key = append(key, bytes.Repeat([]byte("k"), 1000+g.random.IntN(1000))...)
	}
	return key
}

// keyRange is a key and a range_end of every kind: one key, a prefix, from a
// key on, everything, between two keys, and empty.
func (g *generator) keyRange() (key, end []byte) {
	key = g.key()
	switch g.random.IntN(7) {
	case 0, 1:
		return key, nil
	case 2:
		return key, prefixEnd(key)
	case 3:
		return key, []byte{0}
	case 4:
		return []byte{0}, []byte{0}
	}
	return key, g.key()
}

func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return []byte{0}
}

func (g *generator) value() []byte {
	switch g.random.IntN(20) {
	case 0:
		return nil
	case 1:
		return bytes.Repeat([]byte{0, 0xff, 'v'}, 2000)
	}
	return []byte{byte('a' + g.random.IntN(3)), byte(g.random.IntN(256))}
}

// someRevision is one around what is known: compacted, kept, new or too new.
func (g *generator) someRevision() int64 {
	low := g.floor - 2
	return low + g.random.Int64N(g.revision+3-low)
}

func (g *generator) lease() int64 {
	switch {
	case g.chance(75):
		return 0
	case g.chance(5) || len(g.leases) == 0:
		return 424242 // does not exist
	}
	return pick(g, g.leases...)
}

func (g *generator) rangeRequest() *pb.RangeRequest {
	r := &pb.RangeRequest{Serializable: g.chance(20)}
	r.Key, r.RangeEnd = g.keyRange()
	if g.chance(30) {
		r.Revision = g.someRevision()
	}
	if g.chance(40) {
		r.Limit = g.random.Int64N(5)
	}
	if g.chance(30) {
		r.SortOrder = pb.RangeRequest_SortOrder(g.random.IntN(3))
		r.SortTarget = pb.RangeRequest_SortTarget(g.random.IntN(5))
	}
	r.KeysOnly, r.CountOnly = g.chance(15), g.chance(15)
	for _, bound := range []*int64{&r.MinModRevision, &r.MaxModRevision, &r.MinCreateRevision, &r.MaxCreateRevision} {
		if g.chance(8) {
			*bound = g.someRevision()
		}
	}
	if g.chance(1) {
		r.Key = nil
	}
	if g.chance(1) {
		r.SortTarget = 17
	}
	return r
}

func (g *generator) putRequest() *pb.PutRequest {
	r := &pb.PutRequest{Key: g.key(), Value: g.value(), Lease: g.lease(), PrevKv: g.chance(30)}
	if g.chance(8) {
		r.IgnoreValue = true
		if !g.chance(10) {
			r.Value = nil
		}
	}
	if g.chance(8) {
		r.IgnoreLease = true
		if !g.chance(10) {
			r.Lease = 0
		}
	}
	return r
}

func (g *generator) deleteRequest() *pb.DeleteRangeRequest {
	r := &pb.DeleteRangeRequest{PrevKv: g.chance(40)}
	if r.Key, r.RangeEnd = g.keyRange(); g.chance(60) {
		r.RangeEnd = nil
	}
	return r
}
