package etcddb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// session is a time of ownership: a client, a watch of the whole etcd, and an
// index that the watch keeps true.
type session struct {
	db     *Database
	client *clientv3.Client
	index  *index
	epoch  int64
	first  backend.State
	lease  int64

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   sync.WaitGroup

	fenced  atomic.Bool // nothing may be stored any more
	closing sync.Once
	closed  error

	compactor compactor
}

var (
	_ backend.Session = (*session)(nil)
	_ backend.Shared  = (*session)(nil)
)

func newSession(d *Database, client *clientv3.Client) *session {
	s := &session{db: d, client: client, lease: d.lease}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.compactor.wake = make(chan struct{}, 1)
	return s
}

// start raises the epoch and brings the index up to what is stored then.
func (s *session) start(ctx context.Context, member *clientv3.Client) error {
	m, metaAt, clockAt, at, err := s.raise(ctx, member)
	if err != nil {
		return err
	}
	former := s.db.index
	switch {
	case metaAt == 0 && former == nil:
		s.index, err = adopt(ctx, s.client, at)
	case former != nil:
		s.index = former
	}
	if err != nil {
		return err
	}
	first, err := oldest(ctx, s.client, at)
	if err != nil {
		return err
	}
	if s.index == nil || s.index.revision+1 < first {
		// Of history before the adoption nothing is told.
		if s.index, err = load(ctx, s.client, m, metaAt, max(first, min(m.adopted, at)), former); err != nil {
			return err
		}
	}
	s.compactor.done = first
	s.index.mu.Lock()
	s.index.notify = nil
	s.index.mu.Unlock()
	s.done.Go(s.follow)
	if metaAt != 0 {
		if err := s.await(ctx, at); err != nil {
			return err
		}
	}
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if metaAt != 0 {
		x.meta, x.metaAt = m, metaAt
	}
	if clockAt != 0 && x.clockAt != clockAt {
		return fmt.Errorf("the etcd's history does not lead to what it holds (the last batch at revision %d, not %d): it is damaged; restore a backup", clockAt, x.clockAt)
	}
	x.forgetSwept()
	x.clock.floor = max(x.clock.floor, x.lost)
	s.epoch = max(x.meta.epoch, 1)
	s.first = x.state(s.epoch)
	s.done.Go(s.compact)
	return nil
}

// raise writes the next epoch, in a committed transaction, and returns it with
// what is stored after it. An etcd without any batch of ours is left as it is,
// unless one may be on its way.
func (s *session) raise(ctx context.Context, member *clientv3.Client) (m meta, metaAt, clockAt, at int64, err error) {
	for {
		read, err := member.Txn(ctx).Then(clientv3.OpGet(metaKey), clientv3.OpGet(clockKey)).Commit()
		if err != nil {
			return m, 0, 0, 0, fmt.Errorf("read the state of the etcd: %w", err)
		}
		kvs := read.Responses[0].GetResponseRange().Kvs
		seen := int64(0)
		switch {
		case len(kvs) == 1:
			seen = kvs[0].ModRevision
			if err := m.decode(kvs[0].Value); err != nil {
				return m, 0, 0, 0, err
			}
		case !s.db.unsettled:
			return m, 0, 0, read.Header.Revision, nil
		default:
			m = s.db.index.meta
		}
		m.epoch++
		written, err := member.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(metaKey), "=", seen)).
			Then(clientv3.OpPut(metaKey, m.encode()), clientv3.OpGet(clockKey, clientv3.WithKeysOnly())).Commit()
		if err != nil {
			return m, 0, 0, 0, fmt.Errorf("raise the epoch in the etcd: %w", err)
		}
		if !written.Succeeded {
			continue
		}
		if clocks := written.Responses[1].GetResponseRange().Kvs; len(clocks) == 1 {
			clockAt = clocks[0].ModRevision
		}
		return m, written.Header.Revision, clockAt, written.Header.Revision, nil
	}
}

// follow keeps the index true until the session is closed.
func (s *session) follow() {
	for s.ctx.Err() == nil {
		s.index.mu.RLock()
		next := s.index.revision + 1
		s.index.mu.RUnlock()
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(s.ctx))
		for answer := range s.client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(next)) {
			if err := s.take(&answer); err != nil {
				s.db.config.Logger.Warn("the watch of an etcd ended; it begins anew", "error", err)
				break
			}
		}
		cancel()
		select {
		case <-time.After(watchPause):
		case <-s.ctx.Done():
		}
	}
}

// watchPause is the wait before a watch that was ended is begun anew.
const watchPause = 200 * time.Millisecond

func (s *session) take(answer *clientv3.WatchResponse) error {
	if err := answer.Err(); err != nil {
		if answer.CompactRevision > 0 {
			// What was not followed is gone: the index has to be read anew.
			s.fenced.Store(true)
		}
		return err
	}
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil
	}
	for _, g := range groupsOf(answer.Events) {
		if err := x.follow(g); err != nil {
			s.fenced.Store(true)
			return err
		}
	}
	return nil
}

// await returns when the index holds everything up to an etcd revision at which
// something was changed.
func (s *session) await(ctx context.Context, revision int64) error {
	x := s.index
	for {
		x.mu.Lock()
		if x.revision >= revision {
			x.mu.Unlock()
			return nil
		}
		if x.moved == nil {
			x.moved = make(chan struct{})
		}
		moved := x.moved
		x.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			return errOver
		}
	}
}

var errOver = errors.New("the session is over")

func (s *session) State() backend.State { return s.first }

func (s *session) Term() time.Duration { return s.db.config.Term }

// Renew keeps the lease alive and looks at the epoch.
func (s *session) Renew(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return backend.ErrFenced
	}
	if _, err := s.client.KeepAliveOnce(ctx, clientv3.LeaseID(s.lease)); err != nil {
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			s.fenced.Store(true)
			return backend.ErrFenced
		}
		return explain(err)
	}
	answer, err := s.client.Get(ctx, metaKey)
	if err != nil {
		return explain(err)
	}
	if len(answer.Kvs) == 0 {
		return nil
	}
	var m meta
	if err := m.decode(answer.Kvs[0].Value); err != nil {
		return err
	}
	if m.epoch != s.epoch {
		s.fenced.Store(true)
		return backend.ErrFenced
	}
	return nil
}

// Foreign returns what others did and no batch has numbers for.
func (s *session) Foreign() []backend.Change {
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	return s.index.pending
}

// Notify sets whom to tell of changes by others.
func (s *session) Notify(fn func()) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	s.index.notify = fn
	if len(s.index.pending) > 0 {
		fn()
	}
}

// Close ends the session's connection. What it was sending may still arrive;
// the next Acquire sees to that.
func (s *session) Close() error {
	s.closing.Do(func() {
		s.cancel()
		s.closed = s.client.Close()
		s.done.Wait()
		if errors.Is(s.closed, context.Canceled) {
			s.closed = nil
		}
	})
	return s.closed
}
