package mvcc_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
)

// model is the key space at every revision, kept naively.
type model struct {
	at map[int64]map[string]*mvccpb.KeyValue
}

// change makes the state at rev out of the one before it.
func (m *model) change(rev int64, fn func(state map[string]*mvccpb.KeyValue)) {
	state := maps.Clone(m.at[rev-1])
	if state == nil {
		state = map[string]*mvccpb.KeyValue{}
	}
	fn(state)
	m.at[rev] = state
}

func putInto(state map[string]*mvccpb.KeyValue, key, value string, rev int64) {
	kv := &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), CreateRevision: rev, ModRevision: rev, Version: 1}
	if old, ok := state[key]; ok {
		kv.CreateRevision, kv.Version = old.CreateRevision, old.Version+1
	}
	state[key] = kv
}

// check compares a range of the store with the model.
func (m *model) check(t *testing.T, store *mvcc.Store, r *pb.RangeRequest, newest int64) {
	t.Helper()
	rev := r.Revision
	if rev == 0 {
		rev = newest
	}
	var keys []string
	for key := range m.at[rev] {
		if key >= string(r.Key) && (string(r.RangeEnd) == "\x00" || key < string(r.RangeEnd)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	response := read(t, store, r)
	if response.Header.Revision != newest || response.Count != int64(len(keys)) {
		t.Fatalf("range %q to %q at %d: revision %d, count %d, want %d, %d", r.Key, r.RangeEnd, r.Revision, response.Header.Revision, response.Count, newest, len(keys))
	}
	if r.CountOnly {
		return
	}
	if r.Limit > 0 && int64(len(keys)) > r.Limit {
		keys = keys[:r.Limit]
	}
	if len(response.Kvs) != len(keys) || response.More != (response.Count > int64(len(keys))) {
		t.Fatalf("range %q to %q at %d: %d keys, more=%t, want %d of %d", r.Key, r.RangeEnd, r.Revision, len(response.Kvs), response.More, len(keys), response.Count)
	}
	for i, key := range keys {
		want, got := m.at[rev][key], response.Kvs[i]
		if string(got.Key) != key || string(got.Value) != string(want.Value) || got.CreateRevision != want.CreateRevision ||
			got.ModRevision != want.ModRevision || got.Version != want.Version {
			t.Fatalf("at %d: %v, want %v", rev, got, want)
		}
	}
}

// TestEveryRevisionIsReadAsItWas writes at random and reads at random
// revisions: out of the index, the ring and the database, before and after
// compactions and restarts.
func TestEveryRevisionIsReadAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	random := rand.New(rand.NewPCG(3, 4))
	m := &model{at: map[int64]map[string]*mvccpb.KeyValue{1: {}}}
	newest, floor := int64(1), int64(1)
	key := func() string { return fmt.Sprintf("k%02d", random.IntN(60)) }
	for restart := range 4 {
		store := openFile(t, path, tinyRing)
		for range 300 {
			switch random.IntN(20) {
			case 0:
				if newest-floor > 60 {
					floor += int64(random.IntN(40) + 1)
					compact(t, store, floor, random.IntN(2) == 0)
				}
			case 1, 2, 3:
				from, end := key(), key()
				rev, count := remove(t, store, from, end)
				if count > 0 {
					newest++
					m.change(rev, func(state map[string]*mvccpb.KeyValue) {
						maps.DeleteFunc(state, func(k string, _ *mvccpb.KeyValue) bool { return k >= from && k < end })
					})
				}
			default:
				k, v := key(), fmt.Sprint(random.IntN(1000))
				rev := put(t, store, k, v)
				newest++
				m.change(rev, func(state map[string]*mvccpb.KeyValue) { putInto(state, k, v, rev) })
			}
			r := &pb.RangeRequest{Key: []byte(key()), RangeEnd: []byte(key()), CountOnly: random.IntN(4) == 0, Limit: int64(random.IntN(12))}
			switch random.IntN(5) {
			case 0:
				r.RangeEnd = []byte{0}
			case 1:
				r.RangeEnd = append(slices.Clone(r.Key), 0)
			}
			if random.IntN(4) > 0 {
				r.Revision = floor + random.Int64N(newest-floor+1)
			}
			m.check(t, store, r, newest)
		}
		if got := read(t, store, all(0)).Header.Revision; got != newest {
			t.Fatalf("restart %d: revision %d, want %d", restart, got, newest)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConcurrentIncrementsAreNeverLost is the optimistic update that
// Kubernetes does, from many clients on one key.
func TestConcurrentIncrementsAreNeverLost(t *testing.T) {
	store := newFile(t)
	put(t, store, "n", "0")
	const clients, increments = 8, 40
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for done := 0; done < increments; {
				kv := read(t, store, get("n")).Kvs[0]
				var n int
				if _, err := fmt.Sscan(string(kv.Value), &n); err != nil {
					t.Error(err)
				}
				r, err := store.Txn(t.Context(), &pb.TxnRequest{
					Compare: []*pb.Compare{{Key: []byte("n"), Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: kv.ModRevision}}},
					Success: []*pb.RequestOp{putOp("n", fmt.Sprint(n+1))},
					Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: get("n")}}},
				})
				if err != nil {
					t.Error(err)
					return
				}
				if r.Succeeded {
					done++
				} else if now := r.Responses[0].GetResponseRange().Kvs[0]; now.ModRevision <= kv.ModRevision {
					t.Errorf("a compare on %d failed against %d", kv.ModRevision, now.ModRevision)
				}
			}
		})
	}
	group.Wait()
	kv := read(t, store, get("n")).Kvs[0]
	if string(kv.Value) != fmt.Sprint(clients*increments) || kv.Version != clients*increments+1 {
		t.Errorf("the counter is %s at version %d", kv.Value, kv.Version)
	}
}

// TestAPagedListIsOneSnapshot pages through keys that are being changed.
func TestAPagedListIsOneSnapshot(t *testing.T) {
	for _, ring := range []func(*mvcc.Options){tinyRing, func(*mvcc.Options) {}} {
		store := newFile(t, ring)
		const keys = 500
		for i := range keys {
			put(t, store, fmt.Sprintf("k%03d", i), "first")
		}
		page := &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), Limit: 50}
		seen := 0
		for {
			r := read(t, store, page)
			if page.Revision == 0 {
				page.Revision = r.Header.Revision
			}
			if r.Count != int64(keys-seen) {
				t.Fatalf("%d keys remain, want %d", r.Count, keys-seen)
			}
			for _, kv := range r.Kvs {
				if want := fmt.Sprintf("k%03d", seen); string(kv.Key) != want || string(kv.Value) != "first" {
					t.Fatalf("key %d is %v", seen, kv)
				}
				seen++
			}
			if !r.More {
				break
			}
			page.Key = append(r.Kvs[len(r.Kvs)-1].Key, 0)
			for i := seen; i < keys; i += 7 {
				put(t, store, fmt.Sprintf("k%03d", i), "later")
			}
			remove(t, store, fmt.Sprintf("k%03d", keys-seen/50-1), "")
			put(t, store, fmt.Sprintf("k%03dx", seen), "new")
		}
		if seen != keys {
			t.Errorf("%d keys were listed, want %d", seen, keys)
		}
	}
}
