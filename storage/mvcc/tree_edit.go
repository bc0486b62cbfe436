package mvcc

// edit makes the next tree from one. Nodes that it made itself are changed in
// place, all others are copied first. It is used by one goroutine.
type edit struct {
	root  *node
	owner *owner
}

// owner marks the nodes of one edit. It is not the edit itself: nodes live on,
// and would keep the edit's root, and with it every tree that ever was.
type owner struct{ _ byte }

// edit begins one on top of t.
func (t tree) edit() *edit { return &edit{root: t.root, owner: &owner{}} }

// tree is what the edit has made. The edit must not be used afterwards, since
// it would change what readers see.
func (e *edit) tree() tree { return tree{root: e.root} }

// peek looks at the edit's present state without ending it; the result is good
// until the next change.
func (e *edit) peek() tree { return tree{root: e.root} }

func (e *edit) own(n *node) *node {
	if n.owner == e.owner {
		return n
	}
	c := &node{owner: e.owner, count: n.count}
	c.items = append(make([]*item, 0, maxItems), n.items...)
	if len(n.children) > 0 {
		c.children = append(make([]*node, 0, maxItems+1), n.children...)
	}
	return c
}

// set puts the item in and returns the one that had its key, or nil.
func (e *edit) set(i *item) *item {
	if e.root == nil {
		e.root = &node{owner: e.owner, count: 1, items: append(make([]*item, 0, maxItems), i)}
		return nil
	}
	e.root = e.own(e.root)
	if len(e.root.items) >= maxItems {
		left := e.root
		middle, right := e.split(left)
		e.root = &node{owner: e.owner, count: left.count + right.count + 1}
		e.root.items = append(make([]*item, 0, maxItems), middle)
		e.root.children = append(make([]*node, 0, maxItems+1), left, right)
	}
	return e.insert(e.root, i)
}

// insert works on an owned node that is not full.
func (e *edit) insert(n *node, i *item) *item {
	position, found := n.find(i.key)
	if found {
		old := n.items[position]
		n.items[position] = i
		return old
	}
	if len(n.children) == 0 {
		n.items = insertAt(n.items, position, i)
		n.count++
		return nil
	}
	child := e.own(n.children[position])
	n.children[position] = child
	if len(child.items) >= maxItems {
		middle, right := e.split(child)
		n.items = insertAt(n.items, position, middle)
		n.children = insertAt(n.children, position+1, right)
		switch {
		case i.key == middle.key:
			n.items[position] = i
			return middle
		case i.key > middle.key:
			child = right
		}
	}
	old := e.insert(child, i)
	if old == nil {
		n.count++
	}
	return old
}

// split cuts a full owned node in two around the item that it returns.
func (e *edit) split(n *node) (*item, *node) {
	half := len(n.items) / 2
	middle := n.items[half]
	right := &node{owner: e.owner}
	right.items = append(make([]*item, 0, maxItems), n.items[half+1:]...)
	clear(n.items[half:])
	n.items = n.items[:half]
	if len(n.children) > 0 {
		right.children = append(make([]*node, 0, maxItems+1), n.children[half+1:]...)
		clear(n.children[half+1:])
		n.children = n.children[:half+1]
	}
	n.recount()
	right.recount()
	return middle, right
}

func (n *node) recount() {
	n.count = len(n.items)
	for _, child := range n.children {
		n.count += child.count
	}
}

// remove takes the key out and returns its item, or nil.
func (e *edit) remove(key string) *item {
	if e.peek().get(key) == nil {
		return nil
	}
	e.root = e.own(e.root)
	old := e.delete(e.root, key)
	if len(e.root.items) == 0 {
		if len(e.root.children) > 0 {
			e.root = e.root.children[0]
		} else {
			e.root = nil
		}
	}
	return old
}

// delete takes a key that is below the owned node n out of it.
func (e *edit) delete(n *node, key string) *item {
	n.count--
	position, found := n.find(key)
	if len(n.children) == 0 {
		old := n.items[position]
		n.items = removeAt(n.items, position)
		return old
	}
	if found {
		// The item before it, the last of the left child, takes its place.
		old := n.items[position]
		child := e.own(n.children[position])
		n.children[position] = child
		n.items[position] = e.deleteLast(child)
		e.refill(n, position)
		return old
	}
	child := e.own(n.children[position])
	n.children[position] = child
	old := e.delete(child, key)
	e.refill(n, position)
	return old
}

func (e *edit) deleteLast(n *node) *item {
	n.count--
	last := len(n.items) - 1
	if len(n.children) == 0 {
		old := n.items[last]
		n.items = removeAt(n.items, last)
		return old
	}
	child := e.own(n.children[last+1])
	n.children[last+1] = child
	old := e.deleteLast(child)
	e.refill(n, last+1)
	return old
}

// refill mends n's child at position, which may have become too small, with
// the help of a sibling. The sum of the items below n stays the same.
func (e *edit) refill(n *node, position int) {
	child := n.children[position]
	if len(child.items) >= maxItems/2 {
		return
	}
	if position > 0 && len(n.children[position-1].items) > maxItems/2 {
		left := e.own(n.children[position-1])
		n.children[position-1] = left
		last := len(left.items) - 1
		child.items = insertAt(child.items, 0, n.items[position-1])
		n.items[position-1] = left.items[last]
		left.items = removeAt(left.items, last)
		if len(left.children) > 0 {
			child.children = insertAt(child.children, 0, left.children[last+1])
			left.children = removeAt(left.children, last+1)
		}
		left.recount()
		child.recount()
		return
	}
	if position < len(n.items) && len(n.children[position+1].items) > maxItems/2 {
		right := e.own(n.children[position+1])
		n.children[position+1] = right
		child.items = append(child.items, n.items[position])
		n.items[position] = right.items[0]
		right.items = removeAt(right.items, 0)
		if len(right.children) > 0 {
			child.children = append(child.children, right.children[0])
			right.children = removeAt(right.children, 0)
		}
		right.recount()
		child.recount()
		return
	}
	if position == len(n.items) {
		position--
	}
	left := e.own(n.children[position])
	right := n.children[position+1]
	left.items = append(append(left.items, n.items[position]), right.items...)
	left.children = append(left.children, right.children...)
	left.count += right.count + 1
	n.children[position] = left
	n.items = removeAt(n.items, position)
	n.children = removeAt(n.children, position+1)
}

func insertAt[T any](s []T, position int, value T) []T {
	var zero T
	s = append(s, zero)
	copy(s[position+1:], s[position:])
	s[position] = value
	return s
}

func removeAt[T any](s []T, position int) []T {
	var zero T
	copy(s[position:], s[position+1:])
	s[len(s)-1] = zero
	return s[:len(s)-1]
}
