package mvcc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
)

const (
	benchClients = 32
	benchKeys    = 3000
)

var benchValue = make([]byte, 1024)

func benchKey(i int) []byte { return fmt.Appendf(nil, "/registry/things/ns/%08d", i) }

// fill stores n keys.
func fill(b *testing.B, store *mvcc.Store, n int) {
	b.Helper()
	for start := 0; start < n; start += 100 {
		request := &pb.TxnRequest{}
		for i := start; i < min(start+100, n); i++ {
			request.Success = append(request.Success, putOp(string(benchKey(i)), string(benchValue)))
		}
		if _, err := store.Txn(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}

// clients runs fn from 32 goroutines, b.N times in all.
func clients(b *testing.B, fn func(client, i int)) {
	b.ReportAllocs()
	started := cpuTime(b)
	b.ResetTimer()
	var group sync.WaitGroup
	for client := range benchClients {
		group.Go(func() {
			for i := client; i < b.N; i += benchClients {
				fn(client, i)
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b)-started).Microseconds())/float64(b.N), "cpu-µs/op")
}

// cpuTime is what the process has used; unlike the time on the clock it means
// something on a busy machine.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkCreate(b *testing.B) {
	store := newFile(b)
	clients(b, func(_, i int) {
		key := benchKey(i)
		r, err := store.Txn(context.Background(), &pb.TxnRequest{
			Compare: []*pb.Compare{{Key: key, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{}}},
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: benchValue}}}},
		})
		if err != nil || !r.Succeeded {
			b.Errorf("create: %v, %v", r, err)
		}
	})
}

// benchUpdate is Kubernetes' optimistic update: put if unchanged, else get.
func benchUpdate(b *testing.B, store *mvcc.Store, keys int) {
	revisions := make([]int64, keys)
	for i := range revisions {
		revisions[i] = read(b, store, &pb.RangeRequest{Key: benchKey(i)}).Kvs[0].ModRevision
	}
	clients(b, func(client, i int) {
		n := client + benchClients*rand.IntN(keys/benchClients)
		key := benchKey(n)
		r, err := store.Txn(context.Background(), &pb.TxnRequest{
			Compare: []*pb.Compare{{Key: key, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: revisions[n]}}},
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: benchValue}}}},
			Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
		})
		if err != nil || !r.Succeeded {
			b.Errorf("update: %v, %v", r, err)
		}
		revisions[n] = r.Header.Revision
	})
}

func BenchmarkUpdate(b *testing.B) {
	store := newFile(b)
	fill(b, store, benchKeys)
	benchUpdate(b, store, benchKeys)
}

// BenchmarkUpdateLarge is BenchmarkUpdate on a store that no cache of a database
// holds.
func BenchmarkUpdateLarge(b *testing.B) {
	store := newFile(b)
	fill(b, store, 300_000)
	benchUpdate(b, store, 300_000)
}

func BenchmarkUpdateWatched(b *testing.B) {
	store := newFile(b)
	fill(b, store, benchKeys)
	ws := store.NewWatchStream()
	if _, err := ws.Watch(server.WatchRequest{ID: 1, Key: []byte("/registry/things/"), End: []byte("/registry/things0"), PrevKV: true}); err != nil {
		b.Fatal(err)
	}
	seen := make(chan int)
	go func() {
		events := 0
		for r := range ws.Chan() {
			events += len(r.Events)
		}
		seen <- events
	}()
	benchUpdate(b, store, benchKeys)
	ws.Close()
	<-seen
}

func BenchmarkGet(b *testing.B) {
	store := newFile(b)
	fill(b, store, benchKeys)
	clients(b, func(_, i int) { read(b, store, &pb.RangeRequest{Key: benchKey(i % benchKeys)}) })
}

func BenchmarkGetUncached(b *testing.B) {
	store := newFile(b, func(o *mvcc.Options) { o.CacheBytes = 1 })
	fill(b, store, benchKeys)
	clients(b, func(_, i int) { read(b, store, &pb.RangeRequest{Key: benchKey(i % benchKeys)}) })
}

func benchList(b *testing.B, change ...func(*mvcc.Options)) {
	store := newFile(b, change...)
	fill(b, store, benchKeys)
	clients(b, func(_, i int) {
		start := (i * 500) % benchKeys
		r := read(b, store, &pb.RangeRequest{Key: benchKey(start), RangeEnd: []byte("/registry/things0"), Limit: 500})
		if len(r.Kvs) != 500 {
			b.Errorf("%d keys", len(r.Kvs))
		}
	})
}

func BenchmarkListPage(b *testing.B) { benchList(b) }
func BenchmarkListPageUncached(b *testing.B) {
	benchList(b, func(o *mvcc.Options) { o.CacheBytes = 1 })
}

func BenchmarkCount(b *testing.B) {
	store := newFile(b)
	fill(b, store, benchKeys)
	clients(b, func(_, i int) {
		read(b, store, &pb.RangeRequest{Key: []byte("/registry/things/"), RangeEnd: []byte("/registry/things0"), CountOnly: true})
	})
}

func BenchmarkDelete(b *testing.B) {
	store := newFile(b)
	fill(b, store, b.N)
	clients(b, func(_, i int) {
		if _, count := remove(b, store, string(benchKey(i)), ""); count != 1 {
			b.Errorf("deleted %d", count)
		}
	})
}

// BenchmarkOpen opens a file with a million keys; b.N counts openings.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "store.db")
	store := openFile(b, path)
	fill(b, store, 1_000_000)
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		store := openFile(b, path)
		b.StopTimer()
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
