package mvcc

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// checkNode verifies order, sizes, heights and counts below n.
func checkNode(t *testing.T, n *node) (height int) {
	t.Helper()
	if len(n.items) > maxItems {
		t.Fatalf("a node has %d items", len(n.items))
	}
	count := len(n.items)
	if len(n.children) > 0 {
		if len(n.children) != len(n.items)+1 {
			t.Fatalf("%d items have %d children", len(n.items), len(n.children))
		}
		height = -1
		for _, child := range n.children {
			h := checkNode(t, child)
			if height >= 0 && h != height {
				t.Fatal("leaves at different heights")
			}
			height = h
			count += child.count
		}
	}
	if count != n.count {
		t.Fatalf("count is %d, want %d", n.count, count)
	}
	return height + 1
}

func keysOf(tr tree, s span) []string {
	var keys []string
	tr.ascend(s, func(i *item) bool { keys = append(keys, i.key); return true })
	return keys
}

func TestTreeAgreesWithAMapAndOldTreesNeverChange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	model := map[string]*item{}
	current := tree{}
	type kept struct {
		tree tree
		keys []string
	}
	var snapshots []kept
	for round := range 400 {
		e := current.edit()
		for range 1 + random.IntN(200) {
			key := fmt.Sprintf("k%05d", random.IntN(6000))
			if random.IntN(5) < 2+round/150 {
				if got := e.remove(key); got != model[key] {
					t.Fatalf("remove %s gave %v, want %v", key, got, model[key])
				}
				delete(model, key)
				continue
			}
			i := &item{key: key}
			if got := e.set(i); got != model[key] {
				t.Fatalf("set %s gave %v, want %v", key, got, model[key])
			}
			model[key] = i
		}
		current = e.tree()
		if current.root != nil {
			checkNode(t, current.root)
		}
		all := make([]string, 0, len(model))
		for key := range model {
			all = append(all, key)
		}
		slices.Sort(all)
		if got := keysOf(current, span{open: true}); !slices.Equal(got, all) {
			t.Fatalf("round %d: %d keys, want %d", round, len(got), len(all))
		}
		a, b := fmt.Sprintf("k%05d", random.IntN(6000)), fmt.Sprintf("k%05d", random.IntN(6000))
		low, _ := slices.BinarySearch(all, a)
		high, _ := slices.BinarySearch(all, b)
		want := all[low:max(low, high)]
		s := span{from: a, end: b}
		if got := keysOf(current, s); !slices.Equal(got, want) {
			t.Fatalf("range %v has %d keys, want %d", s, len(got), len(want))
		}
		if got := current.count(s); got != len(want) {
			t.Fatalf("count of %v is %d, want %d", s, got, len(want))
		}
		if got := current.get(a); got != model[a] {
			t.Fatalf("get %s gave %v, want %v", a, got, model[a])
		}
		if round%40 == 0 {
			snapshots = append(snapshots, kept{current, all})
		}
	}
	for i, old := range snapshots {
		if got := keysOf(old.tree, span{open: true}); !slices.Equal(got, old.keys) {
			t.Fatalf("snapshot %d has changed", i)
		}
	}
}

func TestBuildTreeMakesAValidTreeOfEverySize(t *testing.T) {
	for n := range 9000 {
		if n > 200 && n%97 != 0 {
			continue
		}
		items := make([]*item, n)
		for i := range items {
			items[i] = &item{key: fmt.Sprintf("%06d", i)}
		}
		built := buildTree(items)
		if built.len() != n {
			t.Fatalf("tree of %d items has %d", n, built.len())
		}
		if n == 0 {
			continue
		}
		checkNode(t, built.root)
		if got := built.count(span{from: "000001", open: true}); got != max(0, n-1) {
			t.Fatalf("count of %d is %d", n, got)
		}
		e := built.edit()
		for i := range items {
			e.remove(items[len(items)-1-i].key)
		}
		if e.tree().len() != 0 {
			t.Fatalf("%d items are left of %d", e.tree().len(), n)
		}
	}
}

func TestATreeDoesNotKeepTheTreesBeforeIt(t *testing.T) {
	current := buildTree([]*item{{key: "first"}})
	gone := make(chan struct{})
	runtime.AddCleanup(current.root, func(gone chan struct{}) { close(gone) }, gone)
	for i := range 200 {
		e := current.edit()
		e.set(&item{key: fmt.Sprint(i)})
		current = e.tree()
	}
	for range 100 {
		runtime.GC()
		select {
		case <-gone:
			runtime.KeepAlive(current.root)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the first tree is still reachable")
}
