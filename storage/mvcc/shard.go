package mvcc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// shard is one backend as the engine runs it: the index of its live keys, the
// value cache, the queue of writes and the goroutine that works it off.
type shard struct {
	index     int
	name      string
	database  backend.Database
	sequencer *sequencer
	laneOf    func(key string) int
	hub       *hub
	lessor    *lessor
	pins      *pins
	log       *slog.Logger
	metrics   *shardMetrics
	options   *Options

	session atomic.Pointer[sessionBox] // nil while there is none
	limits  backend.Limits
	cache   valueCache
	queue   *queue
	down    atomic.Pointer[error] // why writes are refused at once; nil normally
	recent  recentTrees
	missing error        // why the backend could not be opened at the start
	reserve func() error // makes sure that revisions may be handed out

	lastID  atomic.Int64 // of the newest stored version
	lastRev int64        // the writer's; newest stored revision of this backend
	unkempt bool         // the writer's; housekeeping may have something to do
	sweeper sweeper
	size    atomic.Pointer[backend.Size] // as last measured
}

// sessionBox makes an interface fit an atomic pointer.
type sessionBox struct{ backend.Session }

// tree is the acknowledged state.
func (s *shard) tree() tree {
	s.sequencer.mu.Lock()
	defer s.sequencer.mu.Unlock()
	return s.sequencer.lanes[s.index].tree
}

// current returns the session, or why there is none.
func (s *shard) current() (backend.Session, error) {
	if box := s.session.Load(); box != nil {
		return box.Session, nil
	}
	if reason := s.down.Load(); reason != nil {
		return nil, errDown(s.name, (*reason).Error())
	}
	return nil, errDown(s.name, "it is reconnecting")
}

// contents is what a database holds, as memory needs it.
type contents struct {
	tree     tree
	attached []leaseChange // keys with leases
	leases   []backend.Lease
}

// load reads the live keys and the leases.
func (s *shard) load(ctx context.Context, session backend.Session) (*contents, error) {
	c := &contents{}
	var items []*item
	err := session.Newest(ctx, nil, nil, session.State().LastID, func(v *backend.Version) error {
		if v.Deleted {
			return nil
		}
		i := itemOf(v)
		items = append(items, i)
		if i.lease != 0 {
			c.attached = append(c.attached, leaseChange{key: i.key, to: i.lease})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load the index of backend %q: %w", s.name, err)
	}
	c.tree = buildTree(items)
	err = session.Leases(ctx, func(row backend.Lease) error {
		c.leases = append(c.leases, row)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load the leases of backend %q: %w", s.name, err)
	}
	return c, nil
}

func itemOf(v *backend.Version) *item {
	return &item{key: string(v.Key), id: v.ID, mod: v.Rev, create: v.Create, version: v.Version, lease: v.Lease}
}

// values returns the items' answers, from the cache or the database.
func (s *shard) values(ctx context.Context, items []*item) ([]*mvccpb.KeyValue, error) {
	kvs := make([]*mvccpb.KeyValue, len(items))
	var ids []int64
	var positions []int
	for position, i := range items {
		value := i.value.Load()
		if value == nil {
			ids = append(ids, i.id)
			positions = append(positions, position)
			continue
		}
		if !value.used.Load() {
			value.used.Store(true)
		}
		kvs[position] = &value.kv
	}
	s.metrics.values(len(items)-len(ids), len(ids))
	if len(ids) == 0 {
		return kvs, nil
	}
	session, err := s.current()
	if err != nil {
		return nil, err
	}
	err = session.Values(ctx, ids, func(n int, value []byte) {
		position := positions[n]
		kvs[position] = s.remember(items[position], value)
	})
	if err != nil {
		return nil, err
	}
	return kvs, nil
}

// remember hangs a value that was read on its item.
func (s *shard) remember(i *item, value []byte) *mvccpb.KeyValue {
	fresh := newCached(i, value)
	if i.value.CompareAndSwap(nil, fresh) {
		s.cache.add(i, fresh)
	}
	return &fresh.kv
}

// isMissing says that a version was not there; compaction may have removed it
// since the reader looked at the index.
func isMissing(err error) bool {
	var missing *backend.Missing
	return errors.As(err, &missing)
}

// isCompacted says that the answer is etcd's ErrCompacted.
func isCompacted(err error) bool { return errors.Is(err, rpctypes.ErrCompacted) }
