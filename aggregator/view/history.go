package view

import "sort"

// change is one emission: what an object was before and is after it. A nil row
// means that the object did not or does no longer exist.
type change struct {
	number        uint64
	before, after *Row
}

// history holds the newest changes in a ring. It is not safe for concurrent
// use; the View's lock guards it.
type history struct {
	ring  []change
	first int // index of the oldest change in ring
	size  int
	// floor is the number of the newest change that the ring no longer holds:
	// whoever knows the state at floor can be brought up to date.
	floor uint64
}

func newHistory(capacity int) *history {
	return &history{ring: make([]change, 0, capacity)}
}

// reset forgets everything; the state at floor is where history begins.
func (h *history) reset(floor uint64) {
	clear(h.ring)
	h.ring, h.first, h.size, h.floor = h.ring[:0], 0, 0, floor
}

// add appends a change, whose number must be above all earlier ones.
func (h *history) add(c change) {
	if len(h.ring) < cap(h.ring) {
		h.ring = append(h.ring, c)
		h.size++
		return
	}
	h.floor = h.ring[h.first].number
	h.ring[h.first] = c
	h.first = (h.first + 1) % len(h.ring)
}

func (h *history) at(index int) change {
	return h.ring[(h.first+index)%len(h.ring)]
}

// newest is the number of the newest change, or floor without any.
func (h *history) newest() uint64 {
	if h.size == 0 {
		return h.floor
	}
	return h.at(h.size - 1).number
}

// search returns the index of the first change with a number above this one.
func (h *history) search(number uint64) int {
	return sort.Search(h.size, func(i int) bool { return h.at(i).number > number })
}

// holds tells whether this number was handed out and the changes after it are
// all here. Numbers between two of ours may be another process's.
func (h *history) holds(number uint64) bool {
	if number == h.floor {
		return true
	}
	i := h.search(number)
	return i > 0 && h.at(i-1).number == number
}

// after copies up to limit changes with numbers above this one, oldest first.
// It reports false when some of them are no longer held.
func (h *history) after(number uint64, limit int) ([]change, bool) {
	if number < h.floor {
		return nil, false
	}
	from := h.search(number)
	changes := make([]change, 0, min(limit, h.size-from))
	for i := from; i < h.size && len(changes) < limit; i++ {
		changes = append(changes, h.at(i))
	}
	return changes, true
}
