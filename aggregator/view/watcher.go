package view

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// bookmarkEvery and bookmarkBeforeEnd are when a watch that allows them
	// gets bookmarks; both are the values of Kubernetes' own watch cache.
	bookmarkEvery     = time.Minute
	bookmarkBeforeEnd = 2 * time.Second
	// watchBuffer lets the writer to the network collect some events in one
	// flush; it is no backlog, that is what the history is for.
	watchBuffer = 64
	// readAtOnce is how many changes a watch copies under the lock.
	readAtOnce = 256
)

// watcher is one watch. Its goroutine pulls changes from the history; nothing
// ever waits for it.
type watcher struct {
	view        *View
	selected    selection
	bookmarks   bool
	markInitial bool
	deadline    time.Time
	hasDeadline bool

	results chan watch.Event
	once    sync.Once
	stopped chan struct{}
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.once.Do(func() { close(w.stopped) }) }

func (w *watcher) run(ctx context.Context, start watchStart) {
	cursor := start.state.number
	if start.initial && !w.sendInitial(ctx, start.state) {
		return
	}
	timer := w.view.options.Clock.NewTimer(w.untilBookmark())
	defer timer.Stop()
	atOnce := make(chan struct{})
	close(atOnce)
	for {
		changes, changed, held := w.view.after(cursor)
		if !held {
			status := errFellBehind(cursor).Status()
			w.send(ctx, watch.Event{Type: watch.Error, Object: &status})
			return
		}
		for _, c := range changes {
			if event, selected := w.event(c); selected && !w.send(ctx, event) {
				return
			}
			cursor = c.number
		}
		var next <-chan struct{} = atOnce
		if len(changes) == 0 {
			next = changed
		}
		select {
		case <-next:
		case <-timer.C():
			if w.bookmarks && !w.send(ctx, w.bookmark(cursor, false)) {
				return
			}
			timer.Reset(w.untilBookmark())
		case <-ctx.Done():
			return
		case <-w.stopped:
			return
		case <-w.view.closed:
			return
		}
	}
}

// sendInitial sends every selected object of a state, and the bookmark that
// marks their end to clients that asked for it. It reports false when the
// watch is over.
func (w *watcher) sendInitial(ctx context.Context, state snapshot) bool {
	live := true
	state.walk(w.selected, nil, func(row *Row) bool {
		live = w.send(ctx, watch.Event{Type: watch.Added, Object: row.Object()})
		return live
	})
	if live && w.markInitial {
		live = w.send(ctx, w.bookmark(state.number, true))
	}
	return live
}

// send hands an event to the client. It reports false when the watch is over.
func (w *watcher) send(ctx context.Context, event watch.Event) bool {
	select {
	case w.results <- event:
		return true
	case <-ctx.Done():
	case <-w.stopped:
	case <-w.view.closed:
	}
	return false
}

// event says what a change is to this watch: an object that enters its
// selection is added, one that leaves it is deleted.
func (w *watcher) event(c change) (event watch.Event, selected bool) {
	before := c.before != nil && w.selected.matches(c.before.Item)
	after := c.after != nil && w.selected.matches(c.after.Item)
	switch {
	case before && after:
		return watch.Event{Type: watch.Modified, Object: c.after.Object()}, true
	case after:
		return watch.Event{Type: watch.Added, Object: c.after.Object()}, true
	case before:
		// The last state that the client knew, with the number of the change.
		return watch.Event{Type: watch.Deleted, Object: c.before.Item.Object(format(c.number))}, true
	}
	return watch.Event{}, false
}

// bookmark tells the client that it has seen everything up to a number.
func (w *watcher) bookmark(number uint64, initialEnd bool) watch.Event {
	object := w.view.options.New()
	accessor, err := meta.Accessor(object)
	if err != nil { // every kind that can be watched has metadata
		panic(err)
	}
	accessor.SetResourceVersion(format(number))
	if initialEnd {
		accessor.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return watch.Event{Type: watch.Bookmark, Object: object}
}

// untilBookmark is how long from now the next bookmark is due.
func (w *watcher) untilBookmark() time.Duration {
	if !w.hasDeadline {
		return bookmarkEvery
	}
	untilEnd := w.deadline.Sub(w.view.options.Clock.Now())
	if last := untilEnd - bookmarkBeforeEnd; last > 0 && last < bookmarkEvery {
		return last
	}
	return bookmarkEvery
}
