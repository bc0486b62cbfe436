package relations

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func key(name string) Key { return Key{Namespace: "a", Name: name} }

func on(names ...string) Task { return Task{DependsOn: names} }

// fixture is a graph that records which tasks it says have changed.
type fixture struct {
	*Graph
	t       *testing.T
	changed map[Key]bool
	version uint64
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, changed: map[Key]bool{}}
	f.Graph = New(func(key Key) { f.changed[key] = true })
	f.Replace(map[Key]Task{}, 0)
	return f
}

func (f *fixture) set(name string, task Task) {
	f.version++
	f.Set(key(name), task, f.version)
}

func (f *fixture) remove(name string) {
	f.version++
	f.Remove(key(name), f.version)
}

func (f *fixture) expectCycle(what, name string, dependsOn []string, want ...string) {
	f.t.Helper()
	var got []string
	for _, at := range f.Cycle(key(name), dependsOn, nil) {
		got = append(got, at.Name)
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("%s: got the cycle %v, want %v", what, got, want)
	}
}

func TestACycleIsFoundBeforeItIsClosed(t *testing.T) {
	f := newFixture(t)
	f.expectCycle("on itself", "x", []string{"x"}, "x", "x")
	f.set("b", on("c", "d"))
	f.set("c", on("e"))
	f.set("e", on("a"))
	f.set("d", on("a"))
	f.expectCycle("the shortest", "a", []string{"b"}, "a", "b", "d", "a")
	f.expectCycle("none", "z", []string{"a", "b"})
	f.Set(Key{Namespace: "other", Name: "b2"}, on("a"), 99)
	f.expectCycle("in another namespace", "a", []string{"b2"})
	exact := map[Key][]string{key("d"): nil}
	if got := f.Cycle(key("a"), []string{"b"}, exact); len(got) != 5 {
		t.Errorf("what is known better is not used: %v", got)
	}
}

func TestWhatWasWrittenCountsBeforeTheWatchTells(t *testing.T) {
	f := newFixture(t)
	f.set("a", on("b"))
	f.Wrote(key("b"), []string{"c"}, 5)
	f.expectCycle("written, not seen", "c", []string{"a"}, "c", "a", "b", "c")
	f.Set(key("z"), on(), 4)
	f.expectCycle("an older version was seen", "c", []string{"a"}, "c", "a", "b", "c")
	f.Remove(key("b"), 6)
	f.expectCycle("it was deleted since", "c", []string{"a"})
	f.Wrote(key("b"), []string{"c"}, 5)
	f.expectCycle("it is told too late", "c", []string{"a"})
}

func TestStatusFollowsFromOthers(t *testing.T) {
	f := newFixture(t)
	f.set("a", on("b", "c", "missing"))
	f.set("b", on())
	f.set("c", on("b"))
	f.expectStatus("at first", "a", Status{BlockedBy: []string{"b", "c", "missing"}, BlockedByCount: 3})
	f.expectStatus("at first", "b", Status{DependentsCount: 2})
	f.changed = map[Key]bool{}
	f.set("b", Task{Finished: true})
	f.expectStatus("one is finished", "a", Status{BlockedBy: []string{"c", "missing"}, BlockedByCount: 2})
	f.expectChanged("one is finished", "a", "b", "c")
	f.set("missing", Task{Finished: true})
	f.expectStatus("one appears", "a", Status{BlockedBy: []string{"c"}, BlockedByCount: 1})
	f.changed = map[Key]bool{}
	f.remove("a")
	f.expectStatus("one is deleted", "b", Status{DependentsCount: 1})
	f.expectChanged("one is deleted", "b", "c", "missing")
	f.changed = map[Key]bool{}
	f.set("c", on("b", "missing"))
	f.expectChanged("one more dependency", "c", "missing")
}

func (f *fixture) expectStatus(what, name string, want Status) {
	f.t.Helper()
	if got := f.Status(key(name), f.tasks[key(name)].DependsOn); !got.Equal(want) {
		f.t.Errorf("%s: %s has %+v, want %+v", what, name, got, want)
	}
}

func (f *fixture) expectChanged(what string, want ...string) {
	f.t.Helper()
	var got []string
	for at := range f.changed {
		got = append(got, at.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		f.t.Errorf("%s: %v are said to be changed, want %v", what, got, want)
	}
}

func TestBlockedByIsCapped(t *testing.T) {
	f := newFixture(t)
	var names []string
	for i := range 250 {
		names = append(names, fmt.Sprintf("t%03d", 249-i))
	}
	f.set("a", on(names...))
	got := f.Status(key("a"), names)
	if len(got.BlockedBy) != MaxBlockedBy || got.BlockedByCount != 250 || got.BlockedBy[0] != "t000" {
		t.Errorf("got %+v", got)
	}
	if f.Settled(key("a")) {
		t.Error("a status that is not shown is settled")
	}
	f.set("a", Task{DependsOn: names, Shown: got})
	if !f.Settled(key("a")) || !f.Settled(key("nobody")) {
		t.Error("a status that is shown is not settled")
	}
}

// TestCyclicIsWhatIsComputedTheSlowWay changes a small graph at random, as if
// nothing was ever refused, and compares with a search from each task.
func TestCyclicIsWhatIsComputedTheSlowWay(t *testing.T) {
	const names, steps = 9, 1000
	random := rand.New(rand.NewPCG(1, 2))
	f := newFixture(t)
	shown := map[Key]bool{}
	for step := range steps {
		name := fmt.Sprint("t", random.IntN(names))
		if random.IntN(4) == 0 {
			f.remove(name)
		} else {
			var dependsOn []string
			for range random.IntN(3) {
				if other := fmt.Sprint("t", random.IntN(names)); !slices.Contains(dependsOn, other) {
					dependsOn = append(dependsOn, other)
				}
			}
			f.set(name, on(dependsOn...))
		}
		want := map[Key]bool{}
		for at, task := range f.tasks {
			want[at] = f.path(at, task.DependsOn, nil) != nil
		}
		for at := range f.tasks {
			if f.changed[at] { // a controller that settles what it is told of
				shown[at] = f.Status(at, f.tasks[at].DependsOn).Cyclic
			}
		}
		f.changed = map[Key]bool{}
		maps.DeleteFunc(shown, func(at Key, _ bool) bool { _, exists := f.tasks[at]; return !exists })
		if !maps.Equal(shown, want) {
			t.Fatalf("step %d: got %v, want %v", step, shown, want)
		}
		again := newFixture(t)
		again.Replace(maps.Clone(f.tasks), 1)
		if !maps.Equal(again.cyclic, f.cyclic) {
			t.Fatalf("step %d: after a list %v, want %v", step, again.cyclic, f.cyclic)
		}
	}
}

// TestALongChainNeedsNoRecursion would overflow or take minutes if it did.
func TestALongChainNeedsNoRecursion(t *testing.T) {
	const length = 20_000
	tasks := map[Key]Task{}
	for i := range length {
		tasks[key(fmt.Sprint("t", i))] = on(fmt.Sprint("t", i+1))
	}
	f := newFixture(t)
	start := time.Now()
	f.Replace(tasks, 1)
	if got := f.Cycle(key(fmt.Sprint("t", length)), []string{"t0"}, nil); len(got) != length+2 {
		t.Errorf("the cycle has %d keys", len(got))
	}
	f.set(fmt.Sprint("t", length), on("t0"))
	if len(f.cyclic) != length+1 {
		t.Errorf("%d tasks are on the cycle", len(f.cyclic))
	}
	f.remove("t7")
	if len(f.cyclic) != 0 {
		t.Errorf("%d tasks are still on the cycle", len(f.cyclic))
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}
