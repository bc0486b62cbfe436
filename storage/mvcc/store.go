package mvcc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/storage/server"
)

// replaysAtOnce bounds the reads of the databases for watches that are far
// behind.
const replaysAtOnce = 4

// Store is etcd's key space over one or more databases.
type Store struct {
	options   Options
	log       *slog.Logger
	sequencer *sequencer
	hub       *hub
	lessor    *lessor
	pins      pins
	shards    []*shard
	metrics   *metrics
	replays   chan struct{}

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   sync.WaitGroup
}

var _ server.Store = (*Store)(nil)

// Open takes ownership of the databases, loads their indexes and starts to
// answer. ctx bounds the start alone. The caller closes the store, which
// closes the databases too; so does Open when it fails.
func Open(ctx context.Context, options Options) (*Store, error) {
	options.defaults()
	s := &Store{
		options:   options,
		log:       options.Logger,
		sequencer: newSequencer(len(options.Backends)),
		lessor:    newLessor(),
		replays:   make(chan struct{}, replaysAtOnce),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.hub = newHub(s.sequencer, &options)
	s.metrics = newMetrics(s)
	for index, b := range options.Backends {
		s.shards = append(s.shards, s.newShard(index, b))
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) newShard(index int, b Backend) *shard {
	shard := &shard{
		index:     index,
		name:      b.Name,
		database:  b.Database,
		sequencer: s.sequencer,
		laneOf:    s.laneOf,
		hub:       s.hub,
		lessor:    s.lessor,
		pins:      &s.pins,
		log:       s.log,
		metrics:   s.metrics.shard(b),
		options:   &s.options,
		queue:     newQueue(),
		reserve:   func() error { return nil },
	}
	shard.cache.limit = s.options.CacheBytes
	shard.sweeper.init()
	s.sequencer.lanes[index].name = b.Name
	s.hub.lanes[index].late = shard.recent.invalidate
	return shard
}

func (s *Store) start(ctx context.Context) error {
	if len(s.shards) == 0 {
		return errors.New("a store needs a backend")
	}
	if len(s.shards) > 1 && s.options.Router == (onlyRouter{}) {
		return errors.New("a store with several backends needs a router")
	}
	if err := s.openShards(ctx); err != nil {
		return err
	}
	if err := s.metrics.register(s.options.Metrics); err != nil {
		return fmt.Errorf("register the store's metrics: %w", err)
	}
	for _, shard := range s.shards {
		s.goes(func() { shard.write(s.ctx) })
		s.goes(func() { shard.renew(s.ctx) })
		if !s.options.Frozen {
			s.goes(func() { shard.sweep(s.ctx) })
		}
	}
	if !s.options.Frozen {
		s.done.Add(1)
		go s.expireLeases()
	}
	s.goes(s.tend)
	return nil
}

func (s *Store) goes(fn func()) {
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		fn()
	}()
}

// openShards opens all backends. Where a ceiling is kept, the store can start
// without some of them: it goes on above everything that they may hold, and
// they join when they answer.
func (s *Store) openShards(ctx context.Context) error {
	complete := true
	for _, shard := range s.shards {
		err := shard.open(ctx)
		if err == nil {
			continue
		}
		if s.options.Ceiling == nil || len(s.shards) == 1 {
			return err
		}
		s.log.Error("a backend cannot be opened; starting without it", "backend", shard.name, "error", err)
		complete = false
		shard.missing = err
		s.sequencer.setAbsent(shard.index, err)
		s.hub.absent(shard.index)
		shard.refuse(err)
	}
	if s.options.Ceiling == nil {
		return nil
	}
	return s.startCeiling(complete)
}

// open acquires the database and loads what it holds.
func (s *shard) open(ctx context.Context) error {
	started := time.Now()
	session, err := s.database.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("storage backend %q: %w", s.name, err)
	}
	if err := s.reload(ctx, session); err != nil {
		return errors.Join(err, session.Close())
	}
	if err := s.adopt(ctx, session, started); err != nil {
		return fmt.Errorf("storage backend %q: %w", s.name, err)
	}
	return nil
}

// Close stops everything, answers what waits with an error and closes the
// databases. Streams must be closed by their owners.
func (s *Store) Close() error {
	s.cancel()
	var errs []error
	for _, shard := range s.shards {
		shard.queue.refuse(errClosed)
	}
	s.done.Wait()
	for _, shard := range s.shards {
		shard.queue.refuse(errClosed)
		if box := shard.session.Swap(nil); box != nil {
			errs = append(errs, box.Close())
		}
	}
	for _, b := range s.options.Backends {
		errs = append(errs, b.Database.Close())
	}
	s.metrics.unregister(s.options.Metrics)
	return errors.Join(errs...)
}

func (s *Store) laneOf(key string) int { return s.options.Router.Route(key) }

func (s *Store) lanesOf(sp span) []int {
	if sp.single {
		return []int{s.laneOf(sp.from)}
	}
	return s.options.Router.Overlap(sp.from, sp.end)
}
