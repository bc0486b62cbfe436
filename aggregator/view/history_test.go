package view

import "testing"

func TestHistoryHoldsTheNewestChanges(t *testing.T) {
	h := newHistory(3)
	h.reset(10)
	check := func(newest uint64, held, unknown []uint64) {
		t.Helper()
		equal(t, "newest", h.newest(), newest)
		for _, number := range held {
			if !h.holds(number) {
				t.Errorf("at %d: %d is not held", newest, number)
			}
		}
		for _, number := range unknown {
			if h.holds(number) {
				t.Errorf("at %d: %d is held", newest, number)
			}
		}
	}
	check(10, []uint64{10}, []uint64{0, 9, 11})
	for _, number := range []uint64{20, 30, 40} {
		h.add(change{number: number})
	}
	check(40, []uint64{10, 20, 30, 40}, []uint64{9, 11, 25, 41})
	h.add(change{number: 50})
	check(50, []uint64{20, 30, 40, 50}, []uint64{10, 19, 21, 51})
	h.add(change{number: 60})
	h.add(change{number: 70})
	h.add(change{number: 80})
	check(80, []uint64{50, 60, 70, 80}, []uint64{40})

	changes, held := h.after(60, 10)
	if !held || len(changes) != 2 || changes[0].number != 70 || changes[1].number != 80 {
		t.Errorf("after 60: %v %v", changes, held)
	}
	if changes, held := h.after(50, 2); !held || len(changes) != 2 || changes[1].number != 70 {
		t.Errorf("two after 50: %v %v", changes, held)
	}
	if changes, held := h.after(80, 2); !held || len(changes) != 0 {
		t.Errorf("after the newest: %v %v", changes, held)
	}
	if _, held := h.after(49, 10); held {
		t.Error("after 49 is held, and 50 is gone")
	}
}
