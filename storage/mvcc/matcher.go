package mvcc

import (
	"slices"
)

// matcher finds the watchers of a key. Watches are on single keys or on
// prefixes almost always; those are found by lookups, one for each length of
// prefix in use, all others by looking at every one.
type matcher struct {
	points   map[string]watcherSet
	prefixes map[string]watcherSet
	lengths  []prefixLength // in order
	others   watcherSet
}

type prefixLength struct{ length, watchers int }

type watcherSet map[*watcher]struct{}

// prefixOf returns the prefix that the span is, if it is one.
func prefixOf(s span) (string, bool) {
	if s.single || s.open || len(s.end) == 0 {
		return "", false
	}
	last := len(s.end) - 1
	// The end of a prefix is the prefix with its last byte increased, and
	// with bytes of 0xff after that cut off; the latter are left to others.
	if len(s.from) != len(s.end) || s.from[:last] != s.end[:last] || s.from[last] == 0xff || s.from[last]+1 != s.end[last] {
		return "", false
	}
	return s.from, true
}

func (m *matcher) add(w *watcher) {
	if w.span.single {
		if m.points == nil {
			m.points = map[string]watcherSet{}
		}
		addTo(m.points, w.span.from, w)
		return
	}
	if prefix, ok := prefixOf(w.span); ok {
		if m.prefixes == nil {
			m.prefixes = map[string]watcherSet{}
		}
		addTo(m.prefixes, prefix, w)
		at, found := slices.BinarySearchFunc(m.lengths, len(prefix), byLength)
		if !found {
			m.lengths = slices.Insert(m.lengths, at, prefixLength{length: len(prefix)})
		}
		m.lengths[at].watchers++
		return
	}
	if m.others == nil {
		m.others = watcherSet{}
	}
	m.others[w] = struct{}{}
}

func byLength(p prefixLength, length int) int { return p.length - length }

func (m *matcher) remove(w *watcher) {
	if w.span.single {
		removeFrom(m.points, w.span.from, w)
		return
	}
	if prefix, ok := prefixOf(w.span); ok {
		removeFrom(m.prefixes, prefix, w)
		at, _ := slices.BinarySearchFunc(m.lengths, len(prefix), byLength)
		if m.lengths[at].watchers--; m.lengths[at].watchers == 0 {
			m.lengths = slices.Delete(m.lengths, at, at+1)
		}
		return
	}
	delete(m.others, w)
}

// match calls fn for every watcher of the key.
func (m *matcher) match(key string, fn func(*watcher)) {
	for w := range m.points[key] {
		fn(w)
	}
	for _, p := range m.lengths {
		if p.length > len(key) {
			break
		}
		for w := range m.prefixes[key[:p.length]] {
			fn(w)
		}
	}
	for w := range m.others {
		if w.span.contains(key) {
			fn(w)
		}
	}
}

func addTo(sets map[string]watcherSet, name string, w *watcher) {
	set := sets[name]
	if set == nil {
		set = watcherSet{}
		sets[name] = set
	}
	set[w] = struct{}{}
}

func removeFrom(sets map[string]watcherSet, name string, w *watcher) {
	delete(sets[name], w)
	if len(sets[name]) == 0 {
		delete(sets, name)
	}
}
