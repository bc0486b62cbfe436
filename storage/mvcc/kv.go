package mvcc

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// readRetries is how often a read at the newest revision is repeated when
// compaction has removed under its hands what it was about to read.
const readRetries = 20

// Range answers one range.
func (s *Store) Range(ctx context.Context, r *pb.RangeRequest) (response *pb.RangeResponse, err error) {
	started := time.Now()
	spans := []span{spanOf(r.Key, r.RangeEnd)}
	defer func() { s.metrics.ranges.observe(started, spans, r.Key, err) }()
	err = s.read(ctx, spans, r.Revision, func(v view, sn *snapshot) error {
		response, err = sn.rangeOf(ctx, r)
		if err == nil && response.More && sn.rev == v.rev && !v.pending && r.Revision == 0 {
			for i, shard := range sn.shards {
				shard.recent.put(shard.recent.begin(), v.rev, v.trees[i])
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// read runs fn on a consistent cut through the backends of the spans, at the
// newest acknowledged revision of the store or later. revision is what the
// reader will ask for; it is waited for if it was handed out already.
func (s *Store) read(ctx context.Context, spans []span, revision int64, fn func(view, *snapshot) error) error {
	lanes, spans := s.lanesFor(spans)
	for attempt := 0; ; attempt++ {
		v, err := s.sequencer.view(ctx, lanes, spans, revision)
		if err != nil {
			return err
		}
		sn := &snapshot{rev: v.rev, floor: v.floor, trees: v.trees, newer: v.newer, saved: v.rev}
		for _, lane := range lanes {
			sn.shards = append(sn.shards, s.shards[lane])
		}
		err = fn(v, sn)
		// What was read may have been compacted meanwhile: then an answer
		// at the old revision would have holes.
		floor := s.sequencer.compacted(lanes...)
		switch {
		case revision > 0 && revision < floor && (err == nil || isMissing(err)):
			return rpctypes.ErrCompacted
		case err != nil && isMissing(err) && floor > v.floor && attempt < readRetries:
			continue
		}
		return err
	}
}

// lanesFor is the backends of the spans. A read of a single key counts as one
// over everything below it, too: kube-apiserver asks for "now" of a resource
// by a Get of its root key.
func (s *Store) lanesFor(spans []span) ([]int, []span) {
	if len(s.shards) == 1 {
		return onlyLane, spans
	}
	seen := make([]bool, len(s.shards))
	all := spans[:len(spans):len(spans)]
	for _, sp := range spans {
		lanes := s.lanesOf(sp)
		if sp.single {
			lanes = s.options.Router.Reads(sp.from)
			all = append(all, span{from: sp.from + "/", end: sp.from + "0"})
		}
		for _, lane := range lanes {
			seen[lane] = true
		}
	}
	var lanes []int
	for lane := range seen {
		if seen[lane] {
			lanes = append(lanes, lane)
		}
	}
	return lanes, all
}

var onlyLane = []int{0}

// Txn runs one transaction.
func (s *Store) Txn(ctx context.Context, r *pb.TxnRequest) (response *pb.TxnResponse, err error) {
	started := time.Now()
	keys := s.keysOf(r)
	defer func() { s.metrics.txns.observe(started, keys.spans, firstKey(r), err) }()
	if readOnly(r) {
		err = s.read(ctx, keys.spans, 0, func(_ view, sn *snapshot) error {
			response, err = sn.txn(ctx, r)
			return err
		})
		return response, err
	}
	lane, err := s.oneLane(keys.spans)
	if err != nil {
		return nil, err
	}
	shard := s.shards[lane]
	if err := shard.prefetch(ctx, r); err != nil {
		return nil, err
	}
	// The writer may still be at work when ctx has ended and the caller is
	// gone: it has a variable of its own.
	var result *pb.TxnResponse
	err = shard.do(ctx, &job{
		bytes: keys.bytes,
		evaluate: func(b *batch) (failed error) {
			result, failed = b.txn(b.ctx, r)
			return failed
		},
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// oneLane is the backend that holds all the spans.
func (s *Store) oneLane(spans []span) (int, error) {
	if len(s.shards) == 1 {
		return 0, nil
	}
	lane := -1
	for _, sp := range spans {
		for _, other := range s.lanesOf(sp) {
			if lane >= 0 && other != lane {
				return 0, errTwoBackends(s.shards[lane].name, s.shards[other].name)
			}
			lane = other
		}
	}
	return max(lane, 0), nil
}
