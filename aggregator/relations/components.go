package relations

import (
	"slices"
)

// components finds cycles among candidates by Tarjan's strongly connected
// components, without recursion: chains may be very long.
type components struct {
	graph     *Graph
	candidate func(Key) bool
	order     map[Key]int // when a key was first visited, from 1
	low       map[Key]int // the earliest that is known to be reached from it
	open      map[Key]bool
	stack     []Key
	cyclic    []Key
}

// visit is one key that is being visited, with what is left to be looked at.
type visit struct {
	key  Key
	left []Key
}

// onCycles returns the keys that are on a cycle which goes through candidates
// only.
func onCycles[V any](g *Graph, candidates map[Key]V) []Key {
	c := &components{
		graph:     g,
		candidate: func(key Key) bool { _, found := candidates[key]; return found },
		order:     map[Key]int{}, low: map[Key]int{}, open: map[Key]bool{},
	}
	for key := range candidates {
		if c.order[key] == 0 {
			c.from(key)
		}
	}
	return c.cyclic
}

func (c *components) from(start Key) {
	visits := []visit{c.enter(start)}
	for len(visits) > 0 {
		top := &visits[len(visits)-1]
		if len(top.left) == 0 {
			c.leave(top.key)
			visits = visits[:len(visits)-1]
			if len(visits) > 0 {
				above := visits[len(visits)-1].key
				c.low[above] = min(c.low[above], c.low[top.key])
			}
			continue
		}
		target := top.left[0]
		top.left = top.left[1:]
		switch {
		case !c.candidate(target):
		case c.order[target] == 0:
			visits = append(visits, c.enter(target))
		case c.open[target]:
			c.low[top.key] = min(c.low[top.key], c.order[target])
		}
	}
}

func (c *components) enter(key Key) visit {
	number := len(c.order) + 1
	c.order[key], c.low[key], c.open[key] = number, number, true
	c.stack = append(c.stack, key)
	return visit{key, c.graph.targets(key)}
}

// leave takes the component off the stack that a key is the first of.
func (c *components) leave(key Key) {
	if c.low[key] != c.order[key] {
		return
	}
	first := len(c.stack) - 1
	for c.stack[first] != key {
		first--
	}
	members := c.stack[first:]
	for _, member := range members {
		c.open[member] = false
	}
	if len(members) > 1 || slices.Contains(c.graph.targets(key), key) {
		c.cyclic = append(c.cyclic, members...)
	}
	c.stack = c.stack[:first]
}
