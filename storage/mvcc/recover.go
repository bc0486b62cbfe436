package mvcc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// refuseAfter is how long requests wait for a backend that is
	// reconnecting before they are told that it is down.
	refuseAfter = 80 * time.Millisecond
	// reconnectMin and reconnectMax bound the wait between two attempts.
	reconnectMin = 20 * time.Millisecond
	reconnectMax = time.Second
)

// recover finds out what became of a batch whose outcome is unknown, and
// brings the backend back into service. The old session is given up; taking
// ownership again ends whatever of it could still arrive, by a committed
// transaction; only then the database is asked what it holds. Until the answer
// is there, the batch's revisions stay pending: nothing at or above them is
// shown to anybody whom it concerns.
//
// It returns whether the batch is stored. If not, its revisions are given
// back.
func (s *shard) recover(ctx context.Context, b *batch, cause error) (stored bool) {
	s.log.Warn("the outcome of a batch is unknown; taking the database over again", "backend", s.name, "error", cause)
	s.metrics.recoveries.Inc()
	if box := s.session.Swap(nil); box != nil {
		if err := box.Close(); err != nil {
			s.log.Debug("closing the old session", "backend", s.name, "error", err)
		}
	}
	refusal := time.AfterFunc(refuseAfter, func() { s.refuse(cause) })
	defer func() {
		if !refusal.Stop() {
			s.accept()
		}
	}()
	s.insist(ctx, func() (err error) {
		stored, err = s.resume(ctx, b)
		return err
	})
	return stored
}

// insist calls fn until it succeeds or ctx ends.
func (s *shard) insist(ctx context.Context, fn func() error) {
	for wait := reconnectMin; ; wait = min(wait*2, reconnectMax) {
		err := fn()
		if err == nil {
			s.log.Info("the database is back", "backend", s.name)
			return
		}
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("the database cannot be taken over yet", "backend", s.name, "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// join opens a backend that did not answer when the store started.
func (s *shard) join(ctx context.Context) {
	s.insist(ctx, func() error { return s.open(ctx) })
	if ctx.Err() == nil {
		s.accept()
	}
}

// refuse answers what waits, and what comes, with the reason.
func (s *shard) refuse(reason error) {
	s.down.Store(&reason)
	s.sequencer.setDown(s.index, reason)
	s.queue.refuse(errDown(s.name, reason.Error()))
}

func (s *shard) accept() {
	s.queue.accept()
	s.sequencer.setDown(s.index, nil)
	s.down.Store(nil)
}

// resume takes the database over and settles the batch.
func (s *shard) resume(ctx context.Context, b *batch) (stored bool, err error) {
	started := time.Now()
	session, err := s.database.Acquire(ctx)
	if err != nil {
		return false, err
	}
	state := session.State()
	before := b.store.AfterID
	switch {
	case len(b.store.Versions) > 0 && state.LastID == b.store.LastID() && state.LastRev == b.store.LastRev:
		stored = true
	case state.LastID == before && state.LastRev == s.lastRev:
		s.giveBack(b)
	default:
		s.giveBack(b)
		if err := s.reload(ctx, session); err != nil {
			return false, errors.Join(err, session.Close())
		}
	}
	return stored, s.adopt(ctx, session, started)
}

// adopt begins to use a session that was acquired by a call that began at the
// given time.
func (s *shard) adopt(ctx context.Context, session backend.Session, acquired time.Time) error {
	s.limits = session.Limits()
	if term := session.Term(); term > 0 {
		if time.Since(acquired) > term/3 {
			// It had to wait for the former owner's term to end; its own
			// counts from before that.
			acquired = time.Now()
			if err := session.Renew(ctx); err != nil {
				return errors.Join(err, session.Close())
			}
		}
		s.sequencer.extend(s.index, acquired.Add(term))
	}
	s.session.Store(&sessionBox{session})
	if shared, ok := session.(backend.Shared); ok {
		shared.Notify(s.queue.nudge)
	}
	return nil
}

// reload replaces what memory holds by what the database holds: at the start,
// after somebody else has written to it, and after a failover has lost commits.
func (s *shard) reload(ctx context.Context, session backend.Session) error {
	state := session.State()
	c, err := s.load(ctx, session)
	if err != nil {
		return err
	}
	s.sequencer.start(state.LastRev, state.LastRev+1, floorOfMark(state.Floor))
	if state.LastRev < s.lastRev {
		if err := s.declareLost(ctx, session, &state); err != nil {
			return err
		}
	}
	s.recent.invalidate(0)
	s.lastID.Store(state.LastID)
	s.lastRev = state.LastRev
	s.lessor.replace(s.index, s.laneOf, c)
	s.sequencer.install(s.index, state.LastRev, c.tree)
	s.hub.restart(s.index, state.LastRev+1)
	s.sweeper.reset(state)
	s.unkempt = true
	return nil
}

// declareLost is for a failover to a copy that was behind, which has lost
// acknowledged writes. Clients have seen revisions that are void now:
// everything they hold is declared compacted, above anything that was shown.
func (s *shard) declareLost(ctx context.Context, session backend.Session, state *backend.State) error {
	s.log.Error("the database has LOST acknowledged writes; all watches of the backend end",
		"backend", s.name, "acknowledged", s.lastRev, "found", state.LastRev)
	state.LastRev = s.sequencer.skip()
	if err := session.Apply(ctx, &backend.Batch{AfterID: state.LastID, LastRev: state.LastRev}); err != nil {
		return fmt.Errorf("mark what backend %q lost: %w", s.name, err)
	}
	s.sequencer.lost(s.index, state.LastRev)
	s.metrics.lost.Inc()
	return nil
}

// renew keeps the ownership of the database for as long as the store runs.
func (s *shard) renew(ctx context.Context) {
	for {
		box := s.session.Load()
		wait := time.Second
		if box != nil {
			if box.Term() == 0 {
				return
			}
			wait = max(box.Term()/3, 10*time.Millisecond)
			started := time.Now()
			bounded, cancel := context.WithTimeout(ctx, wait)
			err := box.Renew(bounded)
			cancel()
			switch {
			case err == nil:
				s.sequencer.extend(s.index, started.Add(box.Term()))
			case errors.Is(err, backend.ErrFenced):
				// The next batch finds the same and takes the database
				// over again; an idle store must not wait for one.
				_ = s.do(ctx, &job{evaluate: func(b *batch) error { b.force = true; return nil }})
			case ctx.Err() == nil:
				s.log.Warn("ownership of the database cannot be renewed", "backend", s.name, "error", err)
				wait /= 4
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}
