package mvcc

import (
	"math"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/server"
)

// hub brings acknowledged events to watchers. A watcher is either synced, and
// then gets its events from memory in the moment in which they are
// acknowledged, or behind, and then its stream catches it up from the ring or
// the database until it is synced. Whoever cannot take an event at once falls
// behind, so that nobody holds up a writer or another stream.
//
// The hub's lock is taken before the sequencer's. Acknowledging under it makes
// ring, trees and what synced watchers were told move together.
type hub struct {
	mu        sync.Mutex
	sequencer *sequencer
	lanes     []*hubLane
	// merging are the synced watchers of several lanes: their events wait
	// until no lane has an older one pending.
	merging watcherSet
	streams map[*watchStream]struct{}

	touched []*watcher // scratch of deliver
}

// hubLane is one backend's events and the synced watchers of it alone.
type hubLane struct {
	ring   ring
	synced matcher
	// late is called before events are acknowledged below a revision that
	// another lane has already: trees above it that were kept are wrong then.
	late func(rev int64)
	told int64 // the newest revision that synced watchers were told about
	// previous counts watchers that want previous values: writers then keep
	// them at hand.
	previous atomic.Int64
}

func newHub(q *sequencer, options *Options) *hub {
	h := &hub{sequencer: q, merging: watcherSet{}, streams: map[*watchStream]struct{}{}}
	for range q.lanes {
		h.lanes = append(h.lanes, &hubLane{ring: ring{maxBytes: options.RingBytes, maxEvents: options.RingEvents}})
	}
	return h
}

// acknowledge publishes a stored batch of the lane: its events go into the
// ring, its tree becomes what readers see, and the synced watchers are told.
func (h *hub) acknowledge(lane int, rev int64, events []*event, published tree) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lanes[lane].ring.append(events)
	if first := events[0].rev; first <= h.sequencer.now() && h.lanes[lane].late != nil {
		h.lanes[lane].late(first)
	}
	h.sequencer.acknowledge(lane, rev, published)
	h.deliver(lane, rev, events)
	h.lanes[lane].told = rev
	h.merge(lane)
}

// resolved tells the watchers of several lanes that something pending on the
// lane has failed, so that what waited for it can go.
func (h *hub) resolved(lane int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.merge(lane)
}

// deliver tells the synced watchers of this lane alone about the events.
func (h *hub) deliver(lane int, rev int64, events []*event) {
	l := h.lanes[lane]
	for _, e := range events {
		l.synced.match(e.key, func(w *watcher) {
			if e.rev < w.next || !w.wants(e) {
				return
			}
			if len(w.batch) == 0 {
				h.touched = append(h.touched, w)
			}
			w.batch = append(w.batch, e)
		})
	}
	for i, w := range h.touched {
		h.touched[i] = nil
		batch := w.batch
		w.batch = nil
		if h.tell(w, batch, rev) {
			w.next = rev + 1
			continue
		}
		w.next = max(w.next, batch[0].rev)
		h.fallBehind(w)
	}
	h.touched = h.touched[:0]
}

// merge moves the synced watchers of several lanes, this one among them, up to
// their frontier.
func (h *hub) merge(lane int) {
	for w := range h.merging {
		if w.on(lane) && !h.advance(w) {
			h.fallBehind(w)
		}
	}
}

// advance tells a watcher everything up to its frontier from memory. It
// reports false if that was not possible; what the watcher was told is right
// in any case.
func (h *hub) advance(w *watcher) bool {
	frontier := h.frontier(w)
	if frontier < w.next {
		return true
	}
	events, ok := h.fromRings(w, w.next, frontier)
	if !ok || len(events) > maxAdvance {
		return false
	}
	if len(events) > 0 && !h.tell(w, events, frontier) {
		return false
	}
	w.next = frontier + 1
	return true
}

// maxAdvance is the most events that a watcher is given under the hub's lock.
const maxAdvance = 512

// fromRings collects the watcher's events of the revisions [from, to] in order,
// if the rings reach back so far.
func (h *hub) fromRings(w *watcher, from, to int64) ([]*event, bool) {
	var lists [][]*event
	for _, lane := range w.lanes {
		events, ok := h.lanes[lane].ring.since(from)
		if !ok {
			return nil, false
		}
		var wanted []*event
		for _, e := range events {
			if e.rev > to {
				break
			}
			if w.span.contains(e.key) && w.wants(e) {
				wanted = append(wanted, e)
			}
		}
		if len(wanted) > 0 {
			lists = append(lists, wanted)
		}
	}
	return mergeEvents(lists), true
}

func mergeEvents(lists [][]*event) []*event {
	switch len(lists) {
	case 0:
		return nil
	case 1:
		return lists[0]
	}
	var merged []*event
	for {
		least := -1
		for i, events := range lists {
			if len(events) > 0 && (least < 0 || events[0].rev < lists[least][0].rev) {
				least = i
			}
		}
		if least < 0 {
			return merged
		}
		merged = append(merged, lists[least][0])
		lists[least] = lists[least][1:]
	}
}

// tell sends events without waiting. It reports false if the stream has no
// room or a previous value is not in memory.
func (h *hub) tell(w *watcher, events []*event, rev int64) bool {
	answers := make([]*mvccpb.Event, len(events))
	floor := h.sequencer.compacted(w.lanes...)
	for i, e := range events {
		answer, ok := e.answer(w.previous, floor)
		if !ok {
			return false
		}
		answers[i] = answer
	}
	return w.stream.offer(server.WatchResponse{WatchID: w.id, Events: answers, Revision: rev})
}

// answer is the event as watchers get it. It reports false if the previous
// value has to be read first. As in etcd there is none where the revision
// before the event is compacted.
func (e *event) answer(previous bool, floor int64) (*mvccpb.Event, bool) {
	if !previous || !e.hasPrevious() || e.rev-1 < floor {
		if e.plain == nil {
			e.plain = &mvccpb.Event{Type: e.kind(), Kv: e.kv}
		}
		return e.plain, true
	}
	if e.full == nil {
		value := e.before.value.Load()
		if value == nil {
			return nil, false
		}
		e.full = &mvccpb.Event{Type: e.kind(), Kv: e.kv, PrevKv: &value.kv}
	}
	return e.full, true
}

func (e *event) kind() mvccpb.Event_EventType {
	if e.deleted {
		return mvccpb.DELETE
	}
	return mvccpb.PUT
}

// since returns the lane's present tree and its events from rev on, if the
// ring still has them all.
func (h *hub) since(lane int, rev int64) (tree, []*event, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	events, ok := h.lanes[lane].ring.since(rev)
	if !ok {
		return tree{}, nil, false
	}
	h.sequencer.mu.Lock()
	defer h.sequencer.mu.Unlock()
	return h.sequencer.lanes[lane].tree, append([]*event(nil), events...), true
}

// wantsPrevious says whether some watcher of the lane wants previous values.
func (h *hub) wantsPrevious(lane int) bool {
	return h.lanes[lane].previous.Load() > 0
}

// restart makes the lane's ring begin at rev, after events that nobody was
// told about may have come into the database, and sends its watchers to the
// database for them.
func (h *hub) restart(lane int, rev int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lanes[lane]
	l.ring.reset(rev)
	for stream := range h.streams {
		for _, w := range stream.watchers {
			if !w.synced || !w.on(lane) {
				continue
			}
			if len(w.lanes) == 1 {
				w.next = max(w.next, l.told+1)
			}
			h.fallBehind(w)
		}
	}
	l.told = rev - 1
}

// absent says that nothing of the lane's history is known: the database will
// have to be asked for all of it.
func (h *hub) absent(lane int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lanes[lane].ring.reset(math.MaxInt64)
}
