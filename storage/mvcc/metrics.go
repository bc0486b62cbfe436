package mvcc

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the store's collectors. They are made for each store and
// registered where its options say; nothing is global.
type metrics struct {
	store      *Store
	operations *prometheus.HistogramVec
	batches    *prometheus.HistogramVec
	commits    *prometheus.HistogramVec
	hits       *prometheus.CounterVec
	misses     *prometheus.CounterVec
	rejected   *prometheus.CounterVec
	recoveries *prometheus.CounterVec
	lost       *prometheus.CounterVec
	state      *stateCollector
	// ranges and txns are the operations that are counted.
	ranges, txns *operationMetrics
	registered   []prometheus.Collector
}

// shardMetrics are those of one backend.
type shardMetrics struct {
	batch, commit              prometheus.Observer
	hits, misses               prometheus.Counter
	rejected, recoveries, lost prometheus.Counter
}

const namespace = "taskctl_storage"

func newMetrics(s *Store) *metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, []string{"backend"})
	}
	m := &metrics{
		store: s,
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "operation_seconds",
			Help:    "Time from a request's arrival at the engine to its answer; a read of several backends counts for each.",
			Buckets: prometheus.ExponentialBuckets(0.00005, 2, 18),
		}, []string{"backend", "operation", "result"}),
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "batch_versions", Help: "Versions stored by one database transaction.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}, []string{"backend"}),
		commits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "commit_seconds", Help: "Time of one database transaction, the sync included.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}, []string{"backend"}),
		hits:       counter("value_cache_hits_total", "Values answered from memory."),
		misses:     counter("value_cache_misses_total", "Values read from the database."),
		rejected:   counter("rejected_batches_total", "Batches that the database refused."),
		recoveries: counter("recoveries_total", "Batches whose outcome was unknown, and takeovers after them."),
		lost:       counter("lost_writes_total", "Times that the database came back without acknowledged writes."),
		state:      newStateCollector(s),
	}
	m.ranges, m.txns = m.operation("range", s.options.Backends), m.operation("txn", s.options.Backends)
	return m
}

func (m *metrics) shard(b Backend) *shardMetrics {
	return &shardMetrics{
		batch:      m.batches.WithLabelValues(b.Name),
		commit:     m.commits.WithLabelValues(b.Name),
		hits:       m.hits.WithLabelValues(b.Name),
		misses:     m.misses.WithLabelValues(b.Name),
		rejected:   m.rejected.WithLabelValues(b.Name),
		recoveries: m.recoveries.WithLabelValues(b.Name),
		lost:       m.lost.WithLabelValues(b.Name),
	}
}

func (m *metrics) register(registry prometheus.Registerer) error {
	if registry == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.operations, m.batches, m.commits, m.hits, m.misses, m.rejected, m.recoveries, m.lost, m.state} {
		if err := registry.Register(c); err != nil {
			return err
		}
		m.registered = append(m.registered, c)
	}
	return nil
}

func (m *metrics) unregister(registry prometheus.Registerer) {
	for _, c := range m.registered {
		registry.Unregister(c)
	}
}

// operationMetrics are those of one kind of request, by backend.
type operationMetrics struct {
	name       string
	store      *Store
	ok, failed []prometheus.Observer
}

func (m *metrics) operation(name string, backends []Backend) *operationMetrics {
	o := &operationMetrics{name: name, store: m.store}
	for _, b := range backends {
		o.ok = append(o.ok, m.operations.WithLabelValues(b.Name, name, "ok"))
		o.failed = append(o.failed, m.operations.WithLabelValues(b.Name, name, "error"))
	}
	return o
}

// observe counts a request for the backends that it touched and logs it if it
// was slow: its key, never its value.
func (m *operationMetrics) observe(started time.Time, spans []span, key []byte, err error) {
	took := time.Since(started)
	observers := m.ok
	if err != nil {
		observers = m.failed
	}
	lanes, _ := m.store.lanesFor(spans)
	for _, lane := range lanes {
		observers[lane].Observe(took.Seconds())
	}
	if took >= m.store.options.Slow && !errors.Is(err, errClosed) {
		m.store.log.Warn("slow operation", "operation", m.name, "key", string(key), "duration", took, "error", err)
	}
}

func (m *shardMetrics) values(hits, misses int) {
	if hits > 0 {
		m.hits.Add(float64(hits))
	}
	if misses > 0 {
		m.misses.Add(float64(misses))
	}
}

func (m *shardMetrics) applied(b *batch, took time.Duration) {
	m.batch.Observe(float64(len(b.store.Versions)))
	m.commit.Observe(took.Seconds())
}
