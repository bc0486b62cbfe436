package etcddb

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// raceWait bounds the wait for the watch to tell of the change by others that a
// batch has met.
const raceWait = 5 * time.Second

// batchVersions is the most versions of a batch: each is a compare and two
// operations of one etcd transaction, which may have 128 of each.
func (s *session) batchVersions() int { return (s.db.config.MaxTxnOps - 8) / 2 }

// Limits: a single transaction may be larger than a batch, in nested
// transactions of etcd's, but its keys are not compared then.
func (s *session) Limits() backend.Limits {
	return backend.Limits{
		BatchBytes:  s.db.config.MaxRequestBytes * 2 / 3,
		Versions:    s.batchVersions(),
		Transaction: s.db.config.MaxTxnOps * s.db.config.MaxTxnOps / 16,
		KeyOnce:     true,
	}
}

// Apply stores the batch as one transaction of etcd's, which compares the
// epoch, the batch that it follows, and of every key the version that it
// replaces.
func (s *session) Apply(ctx context.Context, batch *backend.Batch) error {
	if s.fenced.Load() {
		return backend.ErrFenced
	}
	if s.ctx.Err() != nil {
		return errOver
	}
	if err := ctx.Err(); err != nil {
		return &backend.Rejected{Err: err}
	}
	w, err := s.prepare(batch)
	if err != nil {
		if errors.Is(err, backend.ErrFenced) {
			s.fenced.Store(true)
		}
		return err
	}
	if w.metaAt == 0 {
		s.db.unsettled = true // Acquire is not called beside Apply
	}
	bounded, cancel := context.WithTimeout(s.ctx, s.db.config.CommitTimeout)
	defer cancel()
	answer, err := s.client.Txn(bounded).
		If(w.compares...).
		Then(nest(w.operations, s.db.config.MaxTxnOps, len(w.compares))...).
		Else(clientv3.OpGet(metaKey, clientv3.WithKeysOnly()), clientv3.OpGet(clockKey, clientv3.WithKeysOnly())).
		Commit()
	if err != nil {
		if rejected, certain := refused(err); certain {
			return rejected
		}
		return fmt.Errorf("store a batch in etcd: %w", explain(err))
	}
	if !answer.Succeeded {
		return s.missed(ctx, w, answer)
	}
	s.stored(batch, w, answer.Header.Revision)
	if len(batch.Sweep) > 0 {
		s.compactor.nudge()
	}
	return nil
}

// missed finds out which compare a transaction failed by.
func (s *session) missed(ctx context.Context, w *write, answer *clientv3.TxnResponse) error {
	at := func(i int) int64 {
		if kvs := answer.Responses[i].GetResponseRange().Kvs; len(kvs) == 1 {
			return kvs[0].ModRevision
		}
		return 0
	}
	if at(0) != w.metaAt || at(1) != w.clockAt {
		s.fenced.Store(true)
		return backend.ErrFenced
	}
	// Others have changed one of the keys. The engine has to give that a
	// revision first.
	ctx, cancel := context.WithTimeout(ctx, raceWait)
	defer cancel()
	if err := s.await(ctx, answer.Header.Revision); err != nil && s.ctx.Err() == nil {
		s.db.config.Logger.Warn("the watch of an etcd is late", "error", err)
	}
	return &backend.Rejected{Err: errors.New("others write to the same keys of the etcd"), Retry: true}
}

// stored takes a batch that is stored at an etcd revision into the index, if
// the watch was not faster.
func (s *session) stored(batch *backend.Batch, w *write, at int64) {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if w.metaAt == 0 {
		x.meta.epoch, x.metaAt = s.epoch, at
	}
	if x.clockAt < at {
		// The watch did not settle them; it will not take this batch in.
		x.pending = x.pending[batch.Foreign:]
		for i := range batch.Versions {
			v := &batch.Versions[i]
			r := recordOf(v, at)
			x.add(string(v.Key), r)
			x.supersede(string(v.Key), &r)
		}
		for _, lease := range batch.PutLeases {
			x.leases[lease.ID] = lease
		}
		for _, id := range batch.DeleteLeases {
			delete(x.leases, id)
		}
		x.clock, x.clockAt = w.clock, at
	}
	for _, id := range batch.Sweep {
		if r := x.get(id); r != nil {
			x.remove(r)
		}
	}
}
