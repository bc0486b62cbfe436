package mvcc

import (
	"slices"
	"sync"
)

// watcher is one watch of a stream. The hub's lock protects what changes.
type watcher struct {
	id       int64
	span     span
	lanes    []int
	previous bool
	noPut    bool
	noDelete bool
	stream   *watchStream

	start    int64 // where the client asked it to begin; 0: at its creation
	next     int64 // the lowest revision that it was not told about yet
	synced   bool
	removed  bool
	progress bool // an answer to a progress request is owed
	batch    []*event

	sending sync.Mutex    // held while its stream waits to send for it
	gone    chan struct{} // closed when it is removed
}

func (w *watcher) wants(e *event) bool {
	if e.deleted {
		return !w.noDelete
	}
	return !w.noPut
}

func (w *watcher) on(lane int) bool { return slices.Contains(w.lanes, lane) }

// frontier is the revision up to which everything that concerns the watcher is
// known.
func (h *hub) frontier(w *watcher) int64 {
	return h.sequencer.frontier(w.lanes, []span{w.span})
}

// setSynced puts the watcher among those that are told at acknowledgement.
func (h *hub) setSynced(w *watcher) {
	w.synced = true
	if len(w.lanes) == 1 {
		h.lanes[w.lanes[0]].synced.add(w)
	} else {
		h.merging[w] = struct{}{}
	}
}

// unsync takes the watcher from there.
func (h *hub) unsync(w *watcher) {
	w.synced = false
	if len(w.lanes) == 1 {
		h.lanes[w.lanes[0]].synced.remove(w)
	} else {
		delete(h.merging, w)
	}
}

// fallBehind hands the watcher to its stream's catching up.
func (h *hub) fallBehind(w *watcher) {
	h.unsync(w)
	w.stream.lag(w)
}

// add makes a watcher known. A start of 0 means from now on.
func (h *hub) add(w *watcher, start int64) {
	if w.previous {
		for _, lane := range w.lanes {
			h.lanes[lane].previous.Add(1)
		}
	}
	now := h.sequencer.now()
	w.start, w.next = start, start
	if start <= 0 {
		// Nothing that is acknowledged is told, nor what is pending below
		// it: that cannot be told apart from older events later on.
		w.next = now + 1
	}
	if w.next > now && len(w.lanes) == 1 {
		h.setSynced(w)
		return
	}
	w.stream.lag(w)
}

// remove forgets the watcher.
func (h *hub) remove(w *watcher) {
	if w.removed {
		return
	}
	if w.synced {
		h.unsync(w)
	}
	w.removed = true
	close(w.gone)
	if w.previous {
		for _, lane := range w.lanes {
			h.lanes[lane].previous.Add(-1)
		}
	}
	delete(w.stream.watchers, w.id)
}
