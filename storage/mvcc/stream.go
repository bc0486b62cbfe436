package mvcc

import (
	"context"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/storage/server"
)

// streamBuffer is how many answers a stream takes before its watchers fall
// behind.
const streamBuffer = 128

// watchStream is a set of watches with one channel of answers. One goroutine
// of its own catches up those that are behind; it alone waits for the channel.
type watchStream struct {
	store    *Store
	hub      *hub
	answers  chan server.WatchResponse
	watchers map[int64]*watcher // the hub's lock protects it
	nextID   int64
	closed   bool

	lagging []*watcher // waiting to be caught up, in turn
	wake    chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

var _ server.WatchStream = (*watchStream)(nil)

// NewWatchStream opens a stream of watches; the caller closes it.
func (s *Store) NewWatchStream() server.WatchStream {
	ws := &watchStream{
		store:    s,
		hub:      s.hub,
		answers:  make(chan server.WatchResponse, streamBuffer),
		watchers: map[int64]*watcher{},
		wake:     make(chan struct{}, 1),
	}
	ws.ctx, ws.cancel = context.WithCancel(s.ctx)
	s.hub.mu.Lock()
	s.hub.streams[ws] = struct{}{}
	s.hub.mu.Unlock()
	ws.done.Add(1)
	go ws.run()
	return ws
}

// Watch adds a watch.
func (ws *watchStream) Watch(r server.WatchRequest) (int64, error) {
	w := &watcher{
		id:       r.ID,
		span:     spanOf(r.Key, r.End),
		previous: r.PrevKV,
		noPut:    r.NoPut,
		noDelete: r.NoDelete,
		stream:   ws,
		gone:     make(chan struct{}),
	}
	if w.span.empty() {
		return -1, errEmptyWatch
	}
	w.lanes = ws.store.lanesOf(w.span)
	ws.hub.mu.Lock()
	defer ws.hub.mu.Unlock()
	if ws.closed {
		return -1, errClosed
	}
	if w.id == 0 {
		for ws.watchers[ws.nextID] != nil {
			ws.nextID++
		}
		w.id = ws.nextID
		ws.nextID++
	} else if ws.watchers[w.id] != nil {
		return -1, ErrWatcherDuplicateID
	}
	ws.watchers[w.id] = w
	ws.hub.add(w, r.StartRevision)
	return w.id, nil
}

// Cancel removes a watch; when it returns, nothing is sent for it any more.
func (ws *watchStream) Cancel(id int64) error {
	ws.hub.mu.Lock()
	w := ws.watchers[id]
	if w == nil {
		ws.hub.mu.Unlock()
		return errNoWatch
	}
	ws.hub.remove(w)
	ws.hub.mu.Unlock()
	// A send that was waiting for room has been told to give up.
	w.sending.Lock()
	defer w.sending.Unlock()
	return nil
}

// Chan carries the answers until Close.
func (ws *watchStream) Chan() <-chan server.WatchResponse { return ws.answers }

// Revision is the newest acknowledged revision.
func (ws *watchStream) Revision() int64 { return ws.hub.sequencer.now() }

// RequestProgress asks for the progress of one watch.
func (ws *watchStream) RequestProgress(id int64) {
	ws.hub.mu.Lock()
	defer ws.hub.mu.Unlock()
	if w := ws.watchers[id]; w != nil {
		ws.hub.askProgress(w)
	}
}

// RequestProgressAll asks for the progress of every watch.
func (ws *watchStream) RequestProgressAll() {
	ws.hub.mu.Lock()
	defer ws.hub.mu.Unlock()
	for _, w := range ws.watchers {
		ws.hub.askProgress(w)
	}
}

// askProgress answers at once if the watcher is synced and there is room, else
// the watcher's own catching up answers in its turn. A watch that starts in
// the future is answered when its start has come: before it, there is nothing
// that it could have been told.
func (h *hub) askProgress(w *watcher) {
	w.progress = true
	if w.synced && !h.answerProgress(w) {
		if len(w.lanes) == 1 {
			w.next = max(w.next, h.lanes[w.lanes[0]].told+1)
		}
		h.fallBehind(w)
	}
}

// answerProgress pays the owed answer of a synced watcher. It reports false if
// there is no room for it.
func (h *hub) answerProgress(w *watcher) bool {
	if !w.progress {
		return true
	}
	rev := h.frontier(w)
	if len(w.lanes) > 1 {
		if !h.advance(w) {
			return false
		}
		rev = w.next - 1
	}
	if rev < w.start-1 {
		return true
	}
	if !w.stream.offer(server.WatchResponse{WatchID: w.id, Revision: rev}) {
		return false
	}
	w.progress = false
	return true
}

// offer sends without waiting, under the hub's lock.
func (ws *watchStream) offer(r server.WatchResponse) bool {
	if ws.closed {
		return true
	}
	select {
	case ws.answers <- r:
		return true
	default:
		return false
	}
}

// lag queues a watcher for catching up, under the hub's lock.
func (ws *watchStream) lag(w *watcher) {
	ws.lagging = append(ws.lagging, w)
	select {
	case ws.wake <- struct{}{}:
	default:
	}
}

// run catches up the watchers that are behind, a batch for each in turn.
func (ws *watchStream) run() {
	defer ws.done.Done()
	for {
		ws.hub.mu.Lock()
		var w *watcher
		if len(ws.lagging) > 0 {
			w = ws.lagging[0]
			ws.lagging = ws.lagging[1:]
		}
		ws.hub.mu.Unlock()
		if w == nil {
			select {
			case <-ws.wake:
				continue
			case <-ws.ctx.Done():
				return
			}
		}
		again, err := ws.catchUp(w)
		if ws.ctx.Err() != nil {
			return
		}
		if err != nil {
			ws.store.log.Warn("a watch cannot be caught up yet", "key", w.span.from, "error", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ws.ctx.Done():
				return
			}
		}
		if again {
			ws.hub.mu.Lock()
			if !w.removed {
				ws.lag(w)
			}
			ws.hub.mu.Unlock()
		}
	}
}

// send waits for room. It gives up when the watcher or the stream is gone.
func (ws *watchStream) send(w *watcher, r server.WatchResponse) bool {
	w.sending.Lock()
	defer w.sending.Unlock()
	select {
	case <-w.gone:
		return false
	default:
	}
	select {
	case ws.answers <- r:
		return true
	case <-w.gone:
	case <-ws.ctx.Done():
	}
	return false
}

// Close removes all watches and closes the channel.
func (ws *watchStream) Close() {
	ws.hub.mu.Lock()
	if ws.closed {
		ws.hub.mu.Unlock()
		return
	}
	ws.closed = true
	for _, w := range ws.watchers {
		ws.hub.remove(w)
	}
	delete(ws.hub.streams, ws)
	ws.hub.mu.Unlock()
	ws.cancel()
	ws.done.Wait()
	close(ws.answers)
}
