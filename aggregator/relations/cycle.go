package relations

import (
	"slices"
)

// Cycle finds the shortest cycle that a task would close by depending on these
// names: the keys from the task to itself, both ends included, or nil. exact
// holds what tasks are known to depend on better than the graph knows.
func (g *Graph) Cycle(key Key, dependsOn []string, exact map[Key][]string) []Key {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.path(key, dependsOn, exact)
}

// path searches in breadth from the task back to itself.
func (g *Graph) path(key Key, dependsOn []string, exact map[Key][]string) []Key {
	from := map[Key]Key{} // how each was reached first
	next := []Key{key}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		names := dependsOn
		if at != key {
			var known bool
			if names, known = exact[at]; !known {
				names = g.dependsOn(at)
			}
		}
		for _, name := range names {
			target := at.sibling(name)
			if _, reached := from[target]; reached {
				continue
			}
			from[target] = at
			if target == key {
				return backwards(from, key)
			}
			next = append(next, target)
		}
	}
	return nil
}

func backwards(from map[Key]Key, key Key) []Key {
	path := []Key{key}
	for at := from[key]; at != key; at = from[at] {
		path = append(path, at)
	}
	path = append(path, key)
	slices.Reverse(path)
	return path
}

// recheck keeps the set of tasks on cycles after a task's names changed. Names
// that were added can only close cycles through that task, names that were
// dropped only open what was closed.
func (g *Graph) recheck(key Key, before, after []string) {
	if _, was := g.cyclic[key]; was && slices.ContainsFunc(before, func(name string) bool { return !slices.Contains(after, name) }) {
		still := onCycles(g, g.cyclic)
		g.forget(still)
	}
	if !slices.ContainsFunc(after, func(name string) bool { return !slices.Contains(before, name) }) {
		return
	}
	below := g.reach(key, func(at Key) []Key { return g.targets(at) })
	if _, itself := below[key]; !itself {
		return
	}
	above := g.reach(key, func(at Key) []Key {
		var keys []Key
		for dependent := range g.dependents[at] {
			keys = append(keys, dependent)
		}
		return keys
	})
	for member := range below {
		_, both := above[member]
		if _, known := g.cyclic[member]; both && !known {
			g.cyclic[member] = struct{}{}
			g.changed(member)
		}
	}
}

// forget drops who is on no cycle any more.
func (g *Graph) forget(still []Key) {
	kept := make(map[Key]struct{}, len(still))
	for _, key := range still {
		kept[key] = struct{}{}
	}
	for key := range g.cyclic {
		if _, found := kept[key]; !found {
			g.changed(key)
		}
	}
	g.cyclic = kept
}

func (g *Graph) targets(key Key) []Key {
	names := g.tasks[key].DependsOn
	keys := make([]Key, 0, len(names))
	for _, name := range names {
		keys = append(keys, key.sibling(name))
	}
	return keys
}

// reach is everything that is reached from a key in one or more steps.
func (g *Graph) reach(key Key, step func(Key) []Key) map[Key]struct{} {
	reached := map[Key]struct{}{}
	next := []Key{key}
	for len(next) > 0 {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for _, target := range step(at) {
			if _, found := reached[target]; !found {
				reached[target] = struct{}{}
				next = append(next, target)
			}
		}
	}
	return reached
}
