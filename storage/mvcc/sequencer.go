package mvcc

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// sequencer is the one order of the store. It hands out revisions to all
// backends, knows which are pending (handed out, outcome not known yet) and
// which were acknowledged, and lets readers see only what is certain: the
// trees of acknowledged writes, at a revision below which nothing that
// concerns the reader is pending.
//
// Drawing a revision and entering it as pending is one step under one lock,
// and so is acknowledging it and publishing the tree that holds it. That makes
// any revision that the sequencer tells a consistent cut through all backends.
type sequencer struct {
	mu    sync.Mutex
	next  int64 // the next revision to be handed out
	acked int64 // the newest acknowledged one of the whole store
	floor int64 // revisions below it are compacted; -1: never compacted
	lanes []*lane

	changed chan struct{} // closed at the next change, if somebody waits
}

// neverCompacted is the floor of a store that was never compacted, as etcd
// tells it.
const neverCompacted = -1

// lane is what the sequencer knows of one backend.
type lane struct {
	name    string
	pending []pendingWrite // in order of revisions
	tree    tree           // of every acknowledged write
	floor   int64          // below it this backend's history is lost; see lost
	newest  int64          // the newest acknowledged revision of this backend
	absent  error          // why nothing is known of the backend; nil normally
	down    error          // why the backend cannot resolve what is pending; nil normally
	// ownedUntil is when the proof of ownership ends; the zero time means
	// never.
	ownedUntil time.Time
}

// pendingWrite is a revision whose outcome is not known, with the keys that it
// changes: a write holds back only readers of its own keys.
type pendingWrite struct {
	rev  int64
	keys []string
}

// view is a consistent cut through the lanes that a reader asked for.
type view struct {
	rev   int64 // what the answer's header says
	floor int64
	lanes []int
	trees []tree // by position in lanes
	// newer says that the trees may hold writes above rev, so that they must
	// be read as history.
	newer bool
	// pending says that some write below rev, of other keys, is pending.
	pending bool
}

func newSequencer(lanes int) *sequencer {
	q := &sequencer{next: 2, acked: 1, floor: neverCompacted}
	for range lanes {
		q.lanes = append(q.lanes, &lane{floor: neverCompacted})
	}
	return q
}

// peek is the revision that draw would hand out now.
func (q *sequencer) peek() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next
}

// now is the newest acknowledged revision.
func (q *sequencer) now() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.acked
}

// compacted is the floor of the lanes.
func (q *sequencer) compacted(lanes ...int) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.floorOf(lanes)
}

func (q *sequencer) floorOf(lanes []int) int64 {
	floor := q.floor
	for _, index := range lanes {
		floor = max(floor, q.lanes[index].floor)
	}
	return floor
}

// skip takes a revision that is above everything that was handed out, with one
// left out before it.
func (q *sequencer) skip() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	rev := q.next + 1
	q.next = rev + 1
	return rev
}

// lost says that the lane's backend came back without revisions that were
// acknowledged: nothing below floor can be answered for any more. floor itself,
// from skip, counts as acknowledged.
func (q *sequencer) lost(lane int, floor int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lanes[lane].floor = floor
	q.acked = max(q.acked, floor)
}

// draw hands out the revision that the caller has seen in peek, for a write to
// keys of the lane, and enters it as pending. It reports false when another
// lane was faster.
func (q *sequencer) draw(lane int, expected int64, keys []string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next != expected {
		return false
	}
	q.next++
	l := q.lanes[lane]
	l.pending = append(l.pending, pendingWrite{rev: expected, keys: keys})
	return true
}

// acknowledge says that the lane's pending writes up to rev are durable and
// publishes the tree that holds them.
func (q *sequencer) acknowledge(lane int, rev int64, published tree) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[lane]
	n := 0
	for n < len(l.pending) && l.pending[n].rev <= rev {
		n++
	}
	if n > 0 {
		l.newest = l.pending[n-1].rev
		q.acked = max(q.acked, l.newest)
		l.pending = append(l.pending[:0], l.pending[n:]...)
	}
	l.tree = published
	q.broadcast()
}

// giveBack says that the lane's pending writes from rev on failed for certain.
// Revisions that no later one follows are handed out again.
func (q *sequencer) giveBack(lane int, rev int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[lane]
	n := len(l.pending)
	for n > 0 && l.pending[n-1].rev >= rev {
		n--
	}
	l.pending = l.pending[:n]
	top := q.acked
	for _, other := range q.lanes {
		if len(other.pending) > 0 {
			top = max(top, other.pending[len(other.pending)-1].rev)
		}
	}
	// What is above top was handed out and came back. Revisions of a start
	// that reserved a ceiling are never below acked.
	if top+1 >= rev {
		q.next = top + 1
	} else {
		q.next = rev
	}
	q.broadcast()
}

func (q *sequencer) broadcast() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}

// setDown says why the lane cannot go on, or, with nil, that it can again.
func (q *sequencer) setDown(lane int, reason error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lanes[lane].down = reason
	q.broadcast()
}

// setFloor publishes a compaction. It reports false if the floor is not below.
func (q *sequencer) setFloor(floor int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if floor <= q.floor {
		return false
	}
	q.floor = floor
	return true
}

// blockedAt is the lowest pending revision of the lane that concerns the
// reader and is at most rev; 0 if there is none.
func (l *lane) blockedAt(spans []span, rev int64) int64 {
	for i := range l.pending {
		if l.pending[i].rev > rev {
			return 0
		}
		for _, key := range l.pending[i].keys {
			for _, s := range spans {
				if s.contains(key) {
					return l.pending[i].rev
				}
			}
		}
	}
	return 0
}

// view waits until everything up to revision (0: the newest acknowledged one
// at the time of the call) is known on the lanes and returns a cut there or
// later.
func (q *sequencer) view(ctx context.Context, lanes []int, spans []span, revision int64) (view, error) {
	q.mu.Lock()
	wanted := max(q.acked, revision)
	for {
		if revision >= q.next {
			q.mu.Unlock()
			return view{}, rpctypes.ErrFutureRev
		}
		v, wait, err := q.tryView(lanes, spans, wanted)
		if err != nil || !wait {
			q.mu.Unlock()
			return v, err
		}
		if q.changed == nil {
			q.changed = make(chan struct{})
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return view{}, ctx.Err()
		}
		q.mu.Lock()
	}
}

func (q *sequencer) tryView(lanes []int, spans []span, wanted int64) (v view, wait bool, err error) {
	rev := q.acked
	if rev < wanted {
		wait = true
	}
	for _, index := range lanes {
		l := q.lanes[index]
		if l.absent != nil {
			return view{}, false, errDown(l.name, l.absent.Error())
		}
		if !l.owned() {
			return view{}, false, errDown(l.name, "its ownership of the database is not certain")
		}
		if blocked := l.blockedAt(spans, rev); blocked != 0 {
			if l.down != nil {
				return view{}, false, errDown(l.name, l.down.Error())
			}
			if blocked <= wanted {
				wait = true
				continue
			}
			v.newer = v.newer || len(lanes) > 1
			rev = blocked - 1
		}
	}
	if wait {
		return view{}, true, nil
	}
	v.rev, v.floor, v.lanes = rev, q.floorOf(lanes), lanes
	for _, index := range lanes {
		l := q.lanes[index]
		v.trees = append(v.trees, l.tree)
		v.pending = v.pending || len(l.pending) > 0 && l.pending[0].rev <= rev
	}
	return v, false, nil
}

// frontier is the revision up to which everything that concerns the reader is
// known.
func (q *sequencer) frontier(lanes []int, spans []span) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	rev := q.acked
	for _, index := range lanes {
		l := q.lanes[index]
		if blocked := l.blockedAt(spans, rev); blocked != 0 {
			rev = blocked - 1
		}
		if !l.owned() || l.absent != nil {
			// Somebody else may be writing to it.
			rev = min(rev, l.newest)
		}
	}
	return rev
}

// owned says whether the ownership of the backend is certain now.
func (l *lane) owned() bool {
	return l.ownedUntil.IsZero() || time.Now().Before(l.ownedUntil)
}

// lag is how far the lane's frontier is behind the store's newest revision.
func (q *sequencer) lag(index int) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	pending := q.lanes[index].pending
	if len(pending) == 0 || pending[0].rev > q.acked {
		return 0
	}
	return q.acked - pending[0].rev + 1
}

// start gives the sequencer what the backends hold.
func (q *sequencer) start(newest, next, floor int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.acked = max(q.acked, newest)
	q.next = max(q.next, next, q.acked+1)
	q.floor = max(q.floor, floor)
}

// install publishes what a lane's database holds, from which on the lane
// answers.
func (q *sequencer) install(lane int, newest int64, published tree) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[lane]
	l.tree, l.newest, l.absent = published, newest, nil
	q.broadcast()
}

// setAbsent says why the lane's database could not be loaded: nothing about
// its keys is known.
func (q *sequencer) setAbsent(lane int, reason error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lanes[lane].absent = reason
}

// extend moves the end of the proof of ownership.
func (q *sequencer) extend(lane int, until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lanes[lane].ownedUntil = until
}
