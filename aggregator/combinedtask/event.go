package combinedtask

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// eventKey names an Event.
type eventKey struct {
	namespace, name string
}

// taskRef is what an Event says it is about: a UID, in its own namespace.
type taskRef struct {
	namespace string
	uid       types.UID
}

// event is what the join remembers of an Event. body is nil for those that are
// too old to be shown, so that a Task with very many costs little.
type event struct {
	key     eventKey
	ref     taskRef
	uid     types.UID
	version string // resourceVersion
	order   uint64 // version as a number, 0 for one that is none
	at      time.Time
	created time.Time
	body    *corev1.Event
}

// occurredAt is when an Event was last seen. Its writers fill one or more of
// these fields, some of them cut to seconds, so the latest one tells.
func occurredAt(e *corev1.Event) time.Time {
	at := e.FirstTimestamp.Time
	later := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	later(e.LastTimestamp.Time)
	later(e.EventTime.Time)
	if e.Series != nil {
		later(e.Series.LastObservedTime.Time)
	}
	if at.IsZero() {
		return e.CreationTimestamp.Time
	}
	return at
}

// compareEvents orders the Events of one Task by time. Times are often equal,
// to the second, so the order in which the API server stored them comes next.
// No two are equal: they are in one namespace and differ in name.
func compareEvents(a, b *event) int {
	if c := a.at.Compare(b.at); c != 0 {
		return c
	}
	if c := a.created.Compare(b.created); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.key.name, b.key.name))
}

// timeline holds the Events of one Task, oldest first.
type timeline []*event

// add puts an Event in its place and lets go of the bodies that are then
// beyond the limit of what is shown.
func (t timeline) add(e *event, limit int) timeline {
	at, _ := slices.BinarySearchFunc(t, e, compareEvents)
	t = slices.Insert(t, at, e)
	if oldestShown := len(t) - limit; oldestShown > 0 {
		t[oldestShown-1].body = nil
		if at < oldestShown {
			e.body = nil
		}
	}
	return t
}

func (t timeline) remove(e *event) timeline {
	at, found := slices.BinarySearchFunc(t, e, compareEvents)
	if !found {
		return t
	}
	return slices.Delete(t, at, at+1)
}

// shown returns the bodies of the newest Events, newest last. There are fewer
// than the limit when a newer Event was deleted before an older one whose body
// is forgotten.
func (t timeline) shown(limit int) []*corev1.Event {
	newest := t[max(0, len(t)-limit):]
	bodies := make([]*corev1.Event, 0, len(newest))
	for _, e := range newest {
		if e.body != nil {
			bodies = append(bodies, e.body)
		}
	}
	return bodies
}
