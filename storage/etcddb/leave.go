package etcddb

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

const (
	// raiseLimit is the most revisions that Leave raises an etcd by; each is a
	// transaction.
	raiseLimit = 5_000_000
	// raiseAtOnce is how many of them are on their way at a time.
	raiseAtOnce = 64
)

// Left is what Leave has done.
type Left struct {
	Keys     int64 // that the etcd holds
	Leases   int64 // that became the etcd's own
	Revision int64 // of the etcd; above every one that the store has shown
}

// Leave makes the etcd one that others, a kube-apiserver for example, can use
// without this program: it raises the etcd's revision above the store's newest
// one and above past (the newest one of a store with other backends), puts
// every key once more, so that no object's revision goes back, gives leases
// back to the etcd, and removes what is the store's own. At the end what is
// older is compacted: whoever asks for a revision of the store's is told to
// list again, as after any compaction.
//
// No store may be open on the etcd. It can be called again when it was
// interrupted. Adopting the etcd afterwards begins anew.
func (d *Database) Leave(ctx context.Context, past int64) (Left, error) {
	acquired, err := d.Acquire(ctx)
	if err != nil {
		return Left{}, err
	}
	s := acquired.(*session)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.keepOwning(ctx, cancel)
	l := &leaving{session: s}
	if err := l.raise(ctx, max(past, s.first.LastRev)); err != nil {
		return Left{}, err
	}
	if err := l.grant(ctx); err != nil {
		return Left{}, err
	}
	if err := l.rewrite(ctx); err != nil {
		return Left{}, err
	}
	gone, err := s.client.Delete(ctx, Prefix, clientv3.WithRange(prefixEnd))
	if err != nil {
		return Left{}, fmt.Errorf("remove the store's own keys from the etcd: %w", explain(err))
	}
	l.left.Revision = gone.Header.Revision
	if _, err := s.client.Compact(ctx, l.left.Revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return Left{}, fmt.Errorf("compact the etcd: %w", explain(err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session, d.index = nil, nil
	return l.left, s.Close()
}

// keepOwning renews the ownership for as long as ctx lasts, and ends it when
// somebody else has it.
func (s *session) keepOwning(ctx context.Context, cancel context.CancelFunc) {
	ticker := time.NewTicker(s.Term() / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if s.Renew(ctx) != nil && s.fenced.Load() {
				cancel()
			}
		case <-ctx.Done():
			return
		}
	}
}

type leaving struct {
	*session
	left   Left
	native map[int64]bool // leases that the etcd has
}

// raise makes the etcd's revision at least one above past.
func (l *leaving) raise(ctx context.Context, past int64) error {
	now, err := l.client.Get(ctx, metaKey, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("read the etcd's revision: %w", explain(err))
	}
	missing := past - now.Header.Revision
	if missing > raiseLimit {
		return fmt.Errorf("the etcd is at revision %d and has to come above %d, which is too far for single steps; restore a snapshot of it with etcdutl snapshot restore --bump-revision %d --mark-compacted, then do this again",
			now.Header.Revision, past, missing)
	}
	var left atomic.Int64
	left.Store(missing + 1)
	var all errgroup.Group
	for range raiseAtOnce {
		all.Go(func() error {
			for left.Add(-1) >= 0 {
				if _, err := l.client.Put(ctx, clockKey+"/raise", ""); err != nil {
					return fmt.Errorf("raise the etcd's revision: %w", explain(err))
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// grant makes the store's leases, with what is left of their time, the etcd's.
func (l *leaving) grant(ctx context.Context) error {
	l.native = map[int64]bool{}
	l.index.mu.RLock()
	leases := make(map[int64]time.Time, len(l.index.leases))
	for id, lease := range l.index.leases {
		leases[id] = time.UnixMilli(lease.Deadline)
	}
	l.index.mu.RUnlock()
	for id, deadline := range leases {
		ttl := max(int64(time.Until(deadline).Seconds()+1), 1)
		_, err := l.db.grant(ctx, l.client, id, ttl)
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseExist) {
			return explain(err)
		}
		l.native[id] = true
		l.left.Leases++
	}
	return nil
}

// rewrite puts every key again, with the value that it has and under the lease
// that the store has it under.
func (l *leaving) rewrite(ctx context.Context) error {
	page := l.batchVersions()
	for from := "\x00"; ; {
		answer, err := l.client.Get(ctx, from, clientv3.WithFromKey(), clientv3.WithKeysOnly(), clientv3.WithLimit(int64(page)))
		if err != nil {
			return fmt.Errorf("read the etcd's keys: %w", explain(err))
		}
		for _, kv := range answer.Kvs {
			from = string(kv.Key) + "\x00"
			if isOurs(kv.Key) {
				continue
			}
			if err := l.put(ctx, string(kv.Key)); err != nil {
				return fmt.Errorf("put the key %q again: %w", kv.Key, explain(err))
			}
			l.left.Keys++
		}
		if !answer.More {
			return nil
		}
	}
}

// put does nothing for a key that is gone: a lease of the etcd's own, or
// somebody else, has taken it.
func (l *leaving) put(ctx context.Context, key string) error {
	option := clientv3.WithIgnoreLease()
	l.index.mu.RLock()
	newest := l.index.newest(key)
	if newest != nil && !newest.deleted && l.native[newest.lease] {
		option = clientv3.WithLease(clientv3.LeaseID(newest.lease))
	}
	l.index.mu.RUnlock()
	_, err := l.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Version(key), ">", 0)).
		Then(clientv3.OpPut(key, "", clientv3.WithIgnoreValue(), option)).Commit()
	return err
}
