package mvcc

import (
	"github.com/prometheus/client_golang/prometheus"
)

// stateCollector tells the store's condition when it is asked.
type stateCollector struct {
	store    *Store
	revision *prometheus.Desc
	floor    *prometheus.Desc
	watchers *prometheus.Desc
	perLane  []laneGauge
}

type laneGauge struct {
	desc  *prometheus.Desc
	value func(s *shard) float64
}

func newStateCollector(s *Store) *stateCollector {
	c := &stateCollector{
		store:    s,
		revision: prometheus.NewDesc(namespace+"_revision", "Newest acknowledged revision.", nil, nil),
		floor:    prometheus.NewDesc(namespace+"_compact_revision", "Revisions below it are compacted.", nil, nil),
		watchers: prometheus.NewDesc(namespace+"_watchers", "Watches by state; one of several backends counts for each.", []string{"backend", "state"}, nil),
	}
	gauge := func(name, help string, value func(*shard) float64) {
		desc := prometheus.NewDesc(namespace+"_"+name, help, []string{"backend"}, nil)
		c.perLane = append(c.perLane, laneGauge{desc: desc, value: value})
	}
	gauge("frontier_lag_revisions", "How far the backend holds back the newest revision.", func(s *shard) float64 { return float64(s.sequencer.lag(s.index)) })
	gauge("queued_requests", "Writes that wait for a batch.", func(s *shard) float64 { return float64(s.queue.len()) })
	gauge("keys", "Live keys.", func(s *shard) float64 { return float64(s.tree().len()) })
	gauge("value_cache_bytes", "Bytes of cached values.", func(s *shard) float64 { return float64(s.cache.size()) })
	gauge("ring_events", "Events kept in memory.", func(s *shard) float64 { events, _ := s.hub.ringSize(s.index); return float64(events) })
	gauge("ring_bytes", "Bytes of events kept in memory.", func(s *shard) float64 { _, bytes := s.hub.ringSize(s.index); return float64(bytes) })
	gauge("compaction_swept_revision", "Compacted versions are deleted up to this compaction.", func(s *shard) float64 { return float64(s.sweeper.reached()) })
	gauge("database_bytes", "Size of the database.", func(s *shard) float64 { allocated, _ := s.sizes(); return float64(allocated) })
	gauge("database_in_use_bytes", "Part of it that holds data.", func(s *shard) float64 { _, used := s.sizes(); return float64(used) })
	gauge("up", "1 while the backend answers.", func(s *shard) float64 {
		if s.session.Load() == nil {
			return 0
		}
		return 1
	})
	return c
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.revision
	out <- c.floor
	out <- c.watchers
	for _, g := range c.perLane {
		out <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(out chan<- prometheus.Metric) {
	s := c.store
	out <- prometheus.MustNewConstMetric(c.revision, prometheus.GaugeValue, float64(s.sequencer.now()))
	out <- prometheus.MustNewConstMetric(c.floor, prometheus.GaugeValue, float64(max(0, s.sequencer.compacted())))
	synced, behind := s.hub.counts()
	for _, shard := range s.shards {
		out <- prometheus.MustNewConstMetric(c.watchers, prometheus.GaugeValue, float64(synced[shard.index]), shard.name, "synced")
		out <- prometheus.MustNewConstMetric(c.watchers, prometheus.GaugeValue, float64(behind[shard.index]), shard.name, "catching_up")
	}
	for _, g := range c.perLane {
		for _, shard := range s.shards {
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(shard), shard.name)
		}
	}
}

func (h *hub) ringSize(lane int) (events int, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &h.lanes[lane].ring
	return len(r.events), r.bytes
}

// counts are the watches of each backend.
func (h *hub) counts() (synced, behind []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	synced, behind = make([]int, len(h.lanes)), make([]int, len(h.lanes))
	for stream := range h.streams {
		for _, w := range stream.watchers {
			counted := behind
			if w.synced {
				counted = synced
			}
			for _, lane := range w.lanes {
				counted[lane]++
			}
		}
	}
	return synced, behind
}

func (w *sweeper) reached() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.swept
}

func (s *shard) sizes() (allocated, inUse int64) {
	if size := s.size.Load(); size != nil {
		return size.Allocated, size.InUse
	}
	return 0, 0
}
