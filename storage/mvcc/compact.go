package mvcc

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// sweepWithWrites is how many superseded versions a batch of writes
	// takes along; sweepAlone how many go in a batch of their own when
	// nobody writes.
	sweepWithWrites = 32
	sweepAlone      = 128
	// sweepRead is how many versions are looked at in one read.
	sweepRead = 4096
)

// Compact makes revisions below r.Revision unreadable. The floor is stored and
// published before it returns; what became superseded is deleted afterwards,
// in small pieces.
func (s *Store) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	err := s.shards[homeLane].do(ctx, &job{
		evaluate: func(b *batch) error {
			switch {
			case r.Revision <= max(s.sequencer.compacted(), floorOfMark(b.store.Floor)):
				return rpctypes.ErrCompacted
			case r.Revision > s.sequencer.now():
				return rpctypes.ErrFutureRev
			}
			b.store.Floor = markOfFloor(r.Revision)
			return nil
		},
		stored: func() {
			s.sequencer.setFloor(r.Revision)
			for _, shard := range s.shards {
				shard.sweeper.aim(r.Revision)
			}
		},
	})
	if err != nil && !(r.Physical && isCompacted(err)) {
		return nil, err
	}
	if r.Physical {
		for _, shard := range s.shards {
			if shard.session.Load() == nil {
				continue // it will be swept when it is back
			}
			if waited := shard.sweeper.wait(ctx, r.Revision); waited != nil {
				return nil, waited
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return &pb.CompactionResponse{Header: s.header()}, nil
}

// A floor is stored as a mark, one higher: etcd lets a client compact at 0,
// which is different from never.
func markOfFloor(floor int64) int64 { return floor + 1 }

// MarkOfFloor is how a floor is stored, for what writes backends without a
// store.
func MarkOfFloor(floor int64) int64 { return markOfFloor(floor) }

func floorOfMark(mark int64) int64 { return mark - 1 }

// sweeper deletes what a compaction has made superfluous. It reads the
// versions in order of their IDs: each one makes the version that it replaced
// superfluous, and a tombstone itself too. The writer deletes them, a few with
// each batch, or in batches of their own when nobody writes.
//
// Tombstones of exactly the compaction's revision stay until the next
// compaction, since a watch from there on is allowed and must see them.
type sweeper struct {
	mu      sync.Mutex
	target  int64 // swept up to here is wanted
	swept   int64 // the highest target that was reached
	cursor  int64 // IDs up to it are done
	pending []sweepPiece
	sent    int   // IDs of pending[0] that are with the writer; -1: none
	floor   int64 // the mark that the database has
	// generation counts the resets.
	generation int
	changed    chan struct{}
	wake       chan struct{}
}

// errSweepReset ends a sweep over a database that was taken over meanwhile.
var errSweepReset = errors.New("the database was taken over")

// sweepPiece is some superfluous versions; cursor is what the sweep has seen
// once they are deleted, 0 if it has not got further.
type sweepPiece struct {
	ids    []int64
	cursor int64
	target int64 // reached with this piece; 0 if not yet
}

func (w *sweeper) init() {
	w.sent = -1
	w.changed = make(chan struct{})
	w.wake = make(chan struct{}, 1)
}

// reset begins again where the database says that the sweep has come to. What
// was handed to the writer before is void.
func (w *sweeper) reset(state backend.State) {
	w.mu.Lock()
	w.cursor, w.pending, w.sent, w.swept, w.floor = state.Swept, nil, -1, 0, state.Floor
	w.generation++
	w.notify()
	w.mu.Unlock()
	if floor := floorOfMark(state.Floor); floor > 0 {
		w.aim(floor)
	}
}

// notify wakes those who wait for a change; the lock is held.
func (w *sweeper) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// aim asks for a sweep up to the floor.
func (w *sweeper) aim(floor int64) {
	w.mu.Lock()
	w.target = max(w.target, floor)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// wait returns when everything below the floor is deleted.
func (w *sweeper) wait(ctx context.Context, floor int64) error {
	for {
		w.mu.Lock()
		done, changed := w.swept >= floor, w.changed
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// idle returns when nothing is deleted any more, as long as the revision is
// pinned.
func (w *sweeper) idle(ctx context.Context, pinned int64) error {
	for {
		w.mu.Lock()
		done, changed := min(w.target, pinned) <= w.swept, w.changed
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waiting says whether there is something for the writer to delete.
func (w *sweeper) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) > 0
}

// fill adds a part of what is to be deleted to a batch.
func (w *sweeper) fill(b *backend.Batch, alone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) == 0 {
		return
	}
	piece := &w.pending[0]
	n := sweepWithWrites
	if alone {
		n = sweepAlone
	}
	n = min(n, len(piece.ids))
	b.Sweep = piece.ids[:n]
	// Every backend knows the floor below which it was swept.
	if mark := markOfFloor(w.target); mark > w.floor {
		b.Floor = max(b.Floor, mark)
	}
	if n == len(piece.ids) {
		b.Swept = piece.cursor
	}
	w.sent = n
}

// stored notes that what fill added is deleted.
func (w *sweeper) stored(b *backend.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent < 0 {
		return
	}
	w.floor = max(w.floor, b.Floor)
	piece := &w.pending[0]
	piece.ids = piece.ids[len(b.Sweep):]
	w.sent = -1
	if len(piece.ids) > 0 {
		return
	}
	w.swept = max(w.swept, piece.target)
	w.pending = w.pending[1:]
	w.notify()
}

// sweep feeds the shard's sweeper until the store closes.
func (s *shard) sweep(ctx context.Context) {
	w := &s.sweeper
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		}
		for {
			w.mu.Lock()
			target := min(w.target, s.pins.lowest())
			done := target <= w.swept
			w.mu.Unlock()
			if done {
				break
			}
			if err := s.sweepTo(ctx, target); err != nil {
				if ctx.Err() != nil {
					return
				}
				s.log.Warn("compaction cannot go on yet", "backend", s.name, "error", err)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// sweepTo looks at the versions up to the target and hands what is superfluous
// to the writer, piece by piece.
func (s *shard) sweepTo(ctx context.Context, target int64) error {
	w := &s.sweeper
	session, err := s.current()
	if err != nil {
		return err
	}
	upTo, err := s.lastIDAt(ctx, session, target)
	if err != nil {
		return err
	}
	w.mu.Lock()
	after, generation := w.cursor, w.generation
	w.mu.Unlock()
	for {
		piece := sweepPiece{}
		seen := 0
		last := after
		err := session.Scan(ctx, after, upTo, false, func(v *backend.Version) error {
			if seen == sweepRead {
				return backend.ErrStop
			}
			seen++
			last = v.ID
			if v.Prev != 0 {
				piece.ids = append(piece.ids, v.Prev)
			}
			if v.Rev < target {
				piece.cursor = v.ID
				if v.Deleted {
					piece.ids = append(piece.ids, v.ID)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		after = last
		if seen < sweepRead {
			piece.target = target
		}
		if err := s.hand(ctx, piece, generation); err != nil {
			return err
		}
		if piece.target != 0 {
			return nil
		}
	}
}

// hand gives a piece to the writer and waits until it is deleted, so that
// little is read ahead.
func (s *shard) hand(ctx context.Context, piece sweepPiece, generation int) error {
	w := &s.sweeper
	w.mu.Lock()
	if w.generation == generation {
		w.pending = append(w.pending, piece)
	}
	w.mu.Unlock()
	s.queue.nudge()
	for {
		w.mu.Lock()
		valid, done, changed := w.generation == generation, len(w.pending) == 0, w.changed
		if valid && done && piece.cursor != 0 {
			w.cursor = piece.cursor
		}
		w.mu.Unlock()
		if !valid {
			return errSweepReset
		}
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
