package etcddb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// compactInterval is the least time between two compactions of etcd, each of
// which looks at every key.
const compactInterval = 5 * time.Second

// compactor lets etcd's compaction follow the engine's.
type compactor struct {
	wake chan struct{}

	mu   sync.Mutex
	done int64 // etcd's history begins here
}

func (c *compactor) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// first is where etcd's history begins, as far as is known.
func (c *compactor) first() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

func (c *compactor) reached(revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = max(c.done, revision)
}

// compact compacts the etcd after the engine has swept, now and then.
func (s *session) compact() {
	for {
		select {
		case <-s.compactor.wake:
		case <-s.ctx.Done():
			return
		}
		select {
		case <-time.After(compactInterval):
		case <-s.ctx.Done():
			return
		}
		if err := s.compactNow(s.ctx, false); err != nil && s.ctx.Err() == nil {
			s.db.config.Logger.Warn("an etcd cannot be compacted yet", "error", err)
			s.compactor.nudge()
		}
	}
}

// compactNow compacts up to the newest etcd revision that takes nothing but
// what the engine has swept.
func (s *session) compactNow(ctx context.Context, physical bool) error {
	target := s.index.disposable()
	if target <= s.compactor.first() {
		return nil
	}
	// Whoever loads the history later can tell this from a compaction of
	// somebody else's, which has taken what the engine still counts on.
	if _, err := s.client.Put(ctx, compactedKey, encode(target)); err != nil {
		return explain(err)
	}
	var options []clientv3.CompactOption
	if physical {
		options = append(options, clientv3.WithCompactPhysical())
	}
	_, err := s.client.Compact(ctx, target, options...)
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return explain(err)
	}
	s.compactor.reached(target)
	return nil
}

// disposable is the newest etcd revision at which every version that is not
// swept can still be read.
func (x *index) disposable() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	// What others did must be followed, and what waits for its numbers, before
	// the version that it replaces may go.
	limit := x.revision
	if len(x.pending) > 0 {
		limit = min(limit, x.pending[0].Mark-1)
	}
	x.keys.Ascend(func(c *chain) bool {
		// The oldest version is gone from the revision of the next on.
		if len(c.records) > 1 {
			limit = min(limit, c.records[1].at-1)
		}
		return true
	})
	return limit
}

// Maintain has nothing to do: compaction runs beside the batches.
func (s *session) Maintain(context.Context) (more bool, err error) { return false, nil }

// Size is that of one member.
func (s *session) Size(ctx context.Context) (backend.Size, error) {
	var failures []error
	for _, endpoint := range s.db.config.Endpoints {
		status, err := s.client.Status(ctx, endpoint)
		if err == nil {
			return backend.Size{Allocated: status.DbSize, InUse: status.DbSizeInUse}, nil
		}
		failures = append(failures, explain(err))
	}
	return backend.Size{}, errors.Join(failures...)
}

// Defragment compacts and then gives unused space back, one member after
// another; each stands still meanwhile.
func (s *session) Defragment(ctx context.Context) error {
	s.index.mu.RLock()
	last := s.index.clockAt
	s.index.mu.RUnlock()
	if err := s.await(ctx, last); err != nil {
		return err
	}
	if err := s.compactNow(ctx, true); err != nil {
		return fmt.Errorf("compact the etcd: %w", err)
	}
	for _, endpoint := range s.db.config.Endpoints {
		if _, err := s.client.Defragment(ctx, endpoint); err != nil {
			return fmt.Errorf("defragment the etcd at %s: %w", endpoint, explain(err))
		}
	}
	return nil
}
