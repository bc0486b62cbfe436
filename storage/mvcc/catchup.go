package mvcc

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/server"
)

const (
	// catchUpEvents and catchUpBytes end a batch of catching up (at the end
	// of a revision).
	catchUpEvents = 1000
	catchUpBytes  = 4 << 20
	// catchUpRows are looked at in one read of the database.
	catchUpRows = 20000
)

// catchUp brings a watcher one batch nearer to the present. It reports whether
// there is more to do.
func (ws *watchStream) catchUp(w *watcher) (again bool, err error) {
	h := ws.hub
	h.mu.Lock()
	if w.removed || w.synced {
		h.mu.Unlock()
		return false, nil
	}
	if floor := h.sequencer.compacted(w.lanes...); w.next < floor {
		h.remove(w)
		h.mu.Unlock()
		ws.sendLast(server.WatchResponse{WatchID: w.id, CompactRevision: floor, Revision: h.sequencer.now()})
		return false, nil
	}
	// The frontier is taken before the events: whatever is up to it is there.
	frontier := h.frontier(w)
	if frontier < w.next {
		h.setSynced(w)
		if !h.answerProgress(w) {
			h.fallBehind(w)
			h.mu.Unlock()
			return false, ws.waitForRoom(w)
		}
		h.mu.Unlock()
		return false, nil
	}
	from := w.next
	events, inMemory := h.fromRings(w, from, frontier)
	if inMemory && len(events) <= maxAdvance && h.advance(w) {
		h.setSynced(w)
		if !h.answerProgress(w) {
			h.fallBehind(w)
		}
		h.mu.Unlock()
		return false, nil
	}
	h.mu.Unlock()

	upTo := frontier
	if inMemory {
		events, upTo = cutEvents(events, frontier)
	} else if events, upTo, err = ws.store.replay(ws.ctx, w, from, frontier); err != nil {
		return true, err
	}
	answers, err := ws.store.answersOf(ws.ctx, w, events)
	if err != nil {
		return true, err
	}
	if h.sequencer.compacted(w.lanes...) > from {
		// What was read may have holes; the next turn says so.
		return true, nil
	}
	if len(answers) > 0 && !ws.send(w, server.WatchResponse{WatchID: w.id, Events: answers, Revision: upTo}) {
		return false, nil
	}
	h.mu.Lock()
	w.next = upTo + 1
	h.mu.Unlock()
	return true, nil
}

// waitForRoom sends the owed answer to a progress request when there is room.
func (ws *watchStream) waitForRoom(w *watcher) error {
	ws.hub.mu.Lock()
	rev := ws.hub.frontier(w)
	rev = min(rev, w.next-1)
	owed := w.progress && rev >= w.start-1
	ws.hub.mu.Unlock()
	if owed && ws.send(w, server.WatchResponse{WatchID: w.id, Revision: rev}) {
		ws.hub.mu.Lock()
		w.progress = false
		ws.hub.mu.Unlock()
	}
	return nil
}

// sendLast sends the answer that ends a watch, which is removed already.
func (ws *watchStream) sendLast(r server.WatchResponse) {
	select {
	case ws.answers <- r:
	case <-ws.ctx.Done():
	}
}

// cutEvents shortens the events to one batch of whole revisions and says up to
// which revision they tell everything.
func cutEvents(events []*event, upTo int64) ([]*event, int64) {
	size := int64(0)
	for i, e := range events {
		if i > 0 && e.rev != events[i-1].rev && (i >= catchUpEvents || size >= catchUpBytes) {
			return events[:i], events[i-1].rev
		}
		size += e.size()
	}
	return events, upTo
}

// replay reads the watcher's events of the revisions [from, to] from the
// databases, as far as one batch goes.
func (s *Store) replay(ctx context.Context, w *watcher, from, to int64) ([]*event, int64, error) {
	select {
	case s.replays <- struct{}{}:
		defer func() { <-s.replays }()
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	var lists [][]*event
	upTo := to
	for _, lane := range w.lanes {
		events, end, err := s.shards[lane].replay(ctx, w, from, to)
		if err != nil {
			return nil, 0, err
		}
		upTo = min(upTo, end)
		lists = append(lists, events)
	}
	for i, events := range lists {
		n := len(events)
		for n > 0 && events[n-1].rev > upTo {
			n--
		}
		lists[i] = events[:n]
	}
	events, upTo := cutEvents(mergeEvents(lists), upTo)
	return events, upTo, nil
}

// replay reads one backend's part. The values of the events are read, those
// before them are not.
func (s *shard) replay(ctx context.Context, w *watcher, from, to int64) ([]*event, int64, error) {
	session, err := s.current()
	if err != nil {
		return nil, 0, err
	}
	after, err := s.lastIDAt(ctx, session, from-1)
	if err != nil {
		return nil, 0, err
	}
	var found []*backend.Version
	rows, last, end := 0, int64(0), to
	err = session.Scan(ctx, after, s.lastID.Load(), false, func(v *backend.Version) error {
		if v.Rev > to {
			return backend.ErrStop
		}
		if v.Rev != last && (rows >= catchUpRows || len(found) >= catchUpEvents) {
			end = last
			return backend.ErrStop
		}
		rows, last = rows+1, v.Rev
		if w.span.contains(stringOf(v.Key)) && ((v.Deleted && !w.noDelete) || (!v.Deleted && !w.noPut)) {
			found = append(found, v)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	events, err := s.eventsOf(ctx, session, found)
	if isMissing(err) {
		// Compacted since; the next turn says so.
		return nil, from - 1, nil
	}
	return events, end, err
}

func (s *shard) eventsOf(ctx context.Context, session backend.Session, versions []*backend.Version) ([]*event, error) {
	events := make([]*event, len(versions))
	var ids []int64
	var positions []int
	for position, v := range versions {
		e := &event{rev: v.Rev, id: v.ID, key: string(v.Key), deleted: v.Deleted}
		if v.Prev != 0 {
			e.before = &item{key: e.key, id: v.Prev}
		}
		if v.Deleted {
			e.kv = &mvccpb.KeyValue{Key: v.Key, ModRevision: v.Rev}
		} else {
			e.now = itemOf(v)
			ids = append(ids, v.ID)
			positions = append(positions, position)
		}
		events[position] = e
	}
	err := session.Values(ctx, ids, func(n int, value []byte) {
		e := events[positions[n]]
		e.kv = &newCached(e.now, value).kv
	})
	return events, err
}

// answersOf makes a watcher's answers of events, reading previous values where
// they are wanted.
func (s *Store) answersOf(ctx context.Context, w *watcher, events []*event) ([]*mvccpb.Event, error) {
	answers := make([]*mvccpb.Event, len(events))
	floor := s.sequencer.compacted(w.lanes...)
	for i, e := range events {
		answers[i] = &mvccpb.Event{Type: e.kind(), Kv: e.kv}
		if !w.previous || !e.hasPrevious() || e.rev-1 < floor {
			continue
		}
		previous, err := s.previousOf(ctx, w, e)
		if err != nil {
			return nil, err
		}
		answers[i].PrevKv = previous
	}
	return answers, nil
}

// previousOf reads what the event's key was before its revision.
func (s *Store) previousOf(ctx context.Context, w *watcher, e *event) (*mvccpb.KeyValue, error) {
	shard := s.shards[s.laneOf(e.key)]
	if value := e.before.value.Load(); value != nil {
		return &value.kv, nil
	}
	session, err := shard.current()
	if err != nil {
		return nil, err
	}
	var found *backend.Version
	err = session.Scan(ctx, e.before.id-1, e.before.id, true, func(v *backend.Version) error {
		found = v
		return backend.ErrStop
	})
	if err != nil {
		return nil, err
	}
	if found == nil {
		if e.rev-1 < s.sequencer.compacted(w.lanes...) {
			return nil, nil
		}
		return nil, errors.New("the version before an event is not stored: the database is damaged")
	}
	if found.Rev == e.rev {
		// The same transaction changed the key twice.
		if found.Prev == 0 {
			return nil, nil
		}
		return s.previousOf(ctx, w, &event{rev: e.rev, key: e.key, before: &item{key: e.key, id: found.Prev}})
	}
	if found.Deleted {
		return nil, nil
	}
	return &newCached(itemOf(found), found.Value).kv, nil
}
