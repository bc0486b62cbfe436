package mvcc

import "sort"

// maxItems is the most items that a node holds; half of it is the least.
const maxItems = 63

// tree is an immutable, ordered set of items that knows how many items stand
// before a key. A writer makes the next tree from it by an edit, which copies
// the nodes on the path to what it changes and leaves this tree as it is: a
// reader keeps its tree for as long as it likes and holds up nobody.
type tree struct {
	root *node
}

// node belongs to the edit that made it, which alone may change it.
type node struct {
	owner    *owner
	count    int // items in this node and below
	items    []*item
	children []*node // none in a leaf, else one more than items
}

// find is the position of the first item that is not before key, and whether
// it is key.
func (n *node) find(key string) (int, bool) {
	low, high := 0, len(n.items)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if n.items[middle].key < key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(n.items) && n.items[low].key == key
}

func (t tree) len() int {
	if t.root == nil {
		return 0
	}
	return t.root.count
}

// get returns the key's item, or nil.
func (t tree) get(key string) *item {
	n := t.root
	for n != nil {
		position, found := n.find(key)
		if found {
			return n.items[position]
		}
		if len(n.children) == 0 {
			return nil
		}
		n = n.children[position]
	}
	return nil
}

// rank is the number of items before key.
func (t tree) rank(key string) int {
	rank := 0
	n := t.root
	for n != nil {
		position, found := n.find(key)
		rank += position
		if len(n.children) == 0 {
			return rank
		}
		for _, child := range n.children[:position] {
			rank += child.count
		}
		if found {
			return rank + n.children[position].count
		}
		n = n.children[position]
	}
	return rank
}

// count is the number of items in the span.
func (t tree) count(s span) int {
	if s.single {
		if t.get(s.from) != nil {
			return 1
		}
		return 0
	}
	high := t.len()
	if !s.open {
		high = t.rank(s.end)
	}
	return max(0, high-t.rank(s.from))
}

// ascend calls fn for the span's items in order until it returns false.
func (t tree) ascend(s span, fn func(*item) bool) {
	if t.root != nil {
		t.root.ascend(s, true, fn)
	}
}

// ascend walks the items of n; from says whether some of them may be before
// the span.
func (n *node) ascend(s span, from bool, fn func(*item) bool) bool {
	start := 0
	if from {
		start, _ = n.find(s.from)
	}
	for i := start; ; i++ {
		if len(n.children) > 0 && !n.children[i].ascend(s, from && i == start, fn) {
			return false
		}
		if i == len(n.items) {
			return true
		}
		if !s.open && n.items[i].key >= s.end {
			return false
		}
		if !fn(n.items[i]) {
			return false
		}
	}
}

// buildTree makes a tree of items that are in order.
func buildTree(items []*item) tree {
	if len(items) == 0 {
		return tree{}
	}
	if !sort.SliceIsSorted(items, func(i, j int) bool { return items[i].key < items[j].key }) {
		sort.Slice(items, func(i, j int) bool { return items[i].key < items[j].key })
	}
	return tree{root: buildNode(items, levelsFor(len(items)))}
}

// levelsFor is the least height at which n items fit with some room left.
func levelsFor(n int) int {
	levels, room := 1, fillItems
	for room < n {
		levels++
		room = room*(fillItems+1) + fillItems
	}
	return levels
}

// fillItems is how full a freshly built node is: inserts shall not split it at
// once.
const fillItems = maxItems * 7 / 8

func buildNode(items []*item, levels int) *node {
	n := &node{count: len(items)}
	if levels == 1 {
		n.items = append(make([]*item, 0, len(items)), items...)
		return n
	}
	// The children share the items evenly, one item stands between two.
	room := fillItems
	for range levels - 2 {
		room = room*(fillItems+1) + fillItems
	}
	children := (len(items) + 1 + room) / (room + 1)
	children = max(children, 2)
	rest := items
	for i := children; i > 0; i-- {
		size := (len(rest) - (i - 1)) / i
		n.children = append(n.children, buildNode(rest[:size], levels-1))
		rest = rest[size:]
		if i > 1 {
			n.items = append(n.items, rest[0])
			rest = rest[1:]
		}
	}
	return n
}
