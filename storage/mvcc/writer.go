package mvcc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// batchJobs is the most requests of one database transaction.
	batchJobs = 512
	// batchBytes is the most bytes of one, where the database has no limit
	// of its own.
	batchBytes = 16 << 20
	// retryRejected is how often a batch is tried again that the database
	// rejected for a reason that is nobody's fault.
	retryRejected = 10
	// retryPause is the wait before a rejected batch that answers no client
	// is tried again.
	retryPause = 100 * time.Millisecond
	// maintainInterval is how often housekeeping runs while the queue is
	// never empty.
	maintainInterval = 200 * time.Millisecond
)

// do queues a job and waits until its outcome is certain or ctx ends.
func (s *shard) do(ctx context.Context, j *job) error {
	j.ctx = ctx
	j.done = make(chan error, 1)
	if err := s.queue.add(j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write is the shard's writer. One batch is with the database at any time; the
// next gathers in the queue meanwhile. There are no timers and no windows: a
// lone request is a batch of its own, at once.
func (s *shard) write(ctx context.Context) {
	if s.missing != nil {
		s.join(ctx)
	}
	maintained := time.Now()
	idle := time.NewTimer(0)
	defer idle.Stop()
	for ctx.Err() == nil {
		jobs := s.queue.take(batchJobs, s.batchBytes())
		if len(jobs) > 0 || s.sweeper.waiting() || len(s.foreign()) > 0 {
			s.commit(ctx, jobs)
			if !s.unkempt || time.Since(maintained) < maintainInterval {
				continue
			}
		}
		// Housekeeping waits a moment after a write, so that it does not
		// stand in the way of the next one of a lone client.
		if s.unkempt {
			if wait := maintainInterval - time.Since(maintained); wait > 0 {
				idle.Reset(wait)
			} else if s.maintain(ctx) {
				continue
			} else {
				maintained = time.Now()
				continue
			}
		}
		select {
		case <-s.queue.wake:
		case <-idle.C:
		case <-ctx.Done():
		}
	}
}

func (s *shard) batchBytes() int {
	if s.limits.BatchBytes > 0 {
		return min(batchBytes, s.limits.BatchBytes)
	}
	return batchBytes
}

// maintain does a piece of the database's housekeeping and reports whether
// there is more. It is looked after again once something was written.
func (s *shard) maintain(ctx context.Context) bool {
	box := s.session.Load()
	if box == nil || !s.unkempt {
		return false
	}
	more, err := box.Maintain(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("housekeeping of the database failed", "backend", s.name, "error", err)
	}
	s.unkempt = more && err == nil
	return s.unkempt
}

// commit evaluates the jobs in order and stores what they change as one batch.
// Nobody is answered before the outcome is certain.
func (s *shard) commit(ctx context.Context, jobs []*job) {
	for attempt := 0; ; attempt++ {
		b, n := s.evaluate(ctx, jobs)
		err := s.store(ctx, b)
		var rejected *backend.Rejected
		switch {
		case err == nil:
			s.acknowledge(b)
			for _, j := range jobs[:n] {
				if j.err == nil && j.stored != nil {
					j.stored()
				}
				j.finish(j.err)
			}
			if n == len(jobs) {
				return
			}
			jobs, attempt = jobs[n:], -1
			continue
		case errors.As(err, &rejected):
			s.giveBack(b)
			if rejected.Retry && attempt < retryRejected {
				continue
			}
			s.metrics.rejected.Inc()
			if len(jobs) == 1 {
				jobs[0].finish(fmt.Errorf("storage backend %q: %w", s.name, rejected.Err))
				return
			}
			if len(jobs) == 0 {
				s.log.Warn("a batch of no client's is refused by the database", "backend", s.name, "error", rejected.Err)
				select {
				case <-time.After(retryPause):
				case <-ctx.Done():
				}
				return
			}
			// One of them is to blame; it must not take the others along.
			for i := range jobs {
				s.commit(ctx, jobs[i:i+1])
			}
			return
		case ctx.Err() != nil:
			for _, j := range jobs {
				j.finish(errClosed)
			}
			return
		}
		// It is certain by now that nothing was stored; whoever still waits
		// is served on the new session.
	}
}

// evaluate makes a batch of what others changed and of the first n jobs. A
// job's own error does not concern the others.
func (s *shard) evaluate(ctx context.Context, jobs []*job) (b *batch, n int) {
	b = s.newBatch(ctx)
	if err := s.reserve(); err != nil {
		for _, j := range jobs {
			j.err = err
		}
		return b, len(jobs)
	}
	b.takeForeign(s.foreign())
	for n < len(jobs) {
		j := jobs[n]
		if j.err = j.ctx.Err(); j.err == nil {
			j.err = j.evaluate(b)
		}
		if j.err == errBatchFull {
			break
		}
		n++
	}
	s.sweeper.fill(&b.store, len(jobs) == 0)
	return b, n
}

// store hands the batch to the database. It returns nil when the batch is
// stored, a *backend.Rejected when the database refused it, and another error
// when it is certain by other means that it is not stored.
func (s *shard) store(ctx context.Context, b *batch) error {
	if b.empty() {
		return nil
	}
	box := s.session.Load()
	if box == nil {
		return &backend.Rejected{Err: errClosed}
	}
	started := time.Now()
	err := box.Apply(ctx, &b.store)
	s.metrics.applied(b, time.Since(started))
	var rejected *backend.Rejected
	if err == nil || errors.As(err, &rejected) {
		return err
	}
	if s.recover(ctx, b, err) {
		return nil
	}
	return err
}

// acknowledge makes a stored batch visible.
func (s *shard) acknowledge(b *batch) {
	s.sweeper.stored(&b.store)
	if b.empty() {
		return
	}
	s.unkempt = true
	s.lastID.Store(b.store.LastID())
	s.lastRev = b.store.LastRev
	if len(b.copied) > 0 {
		s.lessor.copied(b.copied, s.index)
	}
	s.lessor.apply(b.leases)
	if len(b.events) == 0 {
		return
	}
	s.cache.addAll(b.newItems())
	s.hub.acknowledge(s.index, b.store.LastRev, b.events, b.edit.tree())
}

// giveBack returns the revisions of a batch that is certainly not stored.
func (s *shard) giveBack(b *batch) {
	if len(b.events) == 0 {
		return
	}
	s.sequencer.giveBack(s.index, b.events[0].rev)
	s.hub.resolved(s.index)
}
