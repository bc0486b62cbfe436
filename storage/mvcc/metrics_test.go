package mvcc_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/server"
)

// gathered are the metrics' values by "name label label"; of a histogram the
// number of its samples.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "taskctl_storage_")
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

func checkMetrics(t *testing.T, registry *prometheus.Registry, when string, want map[string]float64) {
	t.Helper()
	values := gathered(t, registry)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got, ok := values[name]; !ok || got != want[name] {
			t.Errorf("%s: %s is %v (there: %t), want %v", when, name, got, ok, want[name])
		}
	}
}

func TestMetricsTellOfEachBackendAndGoWithTheStore(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	a, b := newMemoryDB(), newMemoryDB()
	store := openWith(t, mvcc.Options{
		Router:   letters(2),
		Backends: []mvcc.Backend{{Name: "first", Database: a}, {Name: "second", Database: b}},
		Metrics:  registry,
	})
	checkMetrics(t, registry, "in the beginning", map[string]float64{
		"revision": 1, "compact_revision": 0, "up first": 1, "up second": 1, "keys first": 0, "keys second": 0,
		"watchers first synced": 0, "watchers first catching_up": 0, "ring_events first": 0, "ring_bytes first": 0,
		"operation_seconds first txn ok": 0, "operation_seconds first range ok": 0, "commit_seconds first": 0,
		"batch_versions first": 0, "rejected_batches_total first": 0, "recoveries_total first": 0, "lost_writes_total first": 0,
		"value_cache_hits_total first": 0, "value_cache_misses_total first": 0, "frontier_lag_revisions first": 0,
		"queued_requests first": 0, "compaction_swept_revision first": 0,
	})

	watch(t, store, server.WatchRequest{ID: 1, Key: []byte("a")})
	put(t, store, "a", "v")
	put(t, store, "a", "w")
	put(t, store, "b", "v")
	read(t, store, get("a"))
	if _, err := store.Range(t.Context(), &pb.RangeRequest{Key: []byte("a"), Revision: 99}); err == nil {
		t.Fatal("a future revision is answered")
	}
	checkMetrics(t, registry, "after writes and reads", map[string]float64{
		"revision": 4, "keys first": 1, "keys second": 1, "watchers first synced": 1, "watchers second synced": 0,
		"ring_events first": 2, "ring_events second": 1, "operation_seconds first txn ok": 2, "operation_seconds second txn ok": 1,
		"operation_seconds first range ok": 1, "operation_seconds first range error": 1, "operation_seconds second range ok": 0,
		"commit_seconds first": 2, "batch_versions second": 1, "value_cache_hits_total first": 1,
	})
	for _, name := range []string{"ring_bytes first", "value_cache_bytes second"} {
		if gathered(t, registry)[name] == 0 {
			t.Errorf("%s is 0 with something in it", name)
		}
	}

	compact(t, store, 3, true)
	checkMetrics(t, registry, "after a compaction", map[string]float64{
		"compact_revision": 3, "compaction_swept_revision first": 3, "compaction_swept_revision second": 3,
	})

	reached, release := make(chan struct{}), make(chan struct{})
	a.set(func() {
		a.before = func(*backend.Batch) error {
			close(reached)
			<-release
			return nil
		}
	})
	written := make(chan error, 1)
	go func() {
		_, err := tryPut(t.Context(), store, "a", "x")
		written <- err
	}()
	<-reached
	put(t, store, "b", "w")
	checkMetrics(t, registry, "while the first backend stalls", map[string]float64{
		"frontier_lag_revisions first": 2, "frontier_lag_revisions second": 0,
	})
	close(release)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	checkMetrics(t, registry, "after that", map[string]float64{"frontier_lag_revisions first": 0, "revision": 6})

	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if left := gathered(t, registry); len(left) != 0 {
		t.Errorf("after Close there are %v", left)
	}
}
