package relations

import (
	"slices"
	"strings"
)

// MaxBlockedBy is how many names BlockedBy has at most.
const MaxBlockedBy = 100

// Status is what follows for a task from the graph.
type Status struct {
	// BlockedBy are the names of what is depended on and not finished, or does
	// not exist: the first MaxBlockedBy, sorted. BlockedByCount is how many
	// there are.
	BlockedBy      []string
	BlockedByCount int32
	// DependentsCount is how many tasks depend on this one.
	DependentsCount int32
	// Cyclic is true for a task that is part of a cycle.
	Cyclic bool
}

// Equal compares two.
func (s Status) Equal(other Status) bool {
	return s.BlockedByCount == other.BlockedByCount && s.DependentsCount == other.DependentsCount &&
		s.Cyclic == other.Cyclic && slices.Equal(s.BlockedBy, other.BlockedBy)
}

// Settled tells whether a task shows what follows from the graph, or is gone.
func (g *Graph) Settled(key Key) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	task, exists := g.tasks[key]
	return !exists || task.Shown.Equal(g.status(key, task.DependsOn))
}

// Status computes what follows for a task that depends on these names.
func (g *Graph) Status(key Key, dependsOn []string) Status {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.status(key, dependsOn)
}

func (g *Graph) status(key Key, dependsOn []string) Status {
	var blocking []string
	for _, name := range dependsOn {
		if task, exists := g.tasks[key.sibling(name)]; !exists || !task.Finished {
			blocking = append(blocking, name)
		}
	}
	slices.SortFunc(blocking, strings.Compare)
	_, cyclic := g.cyclic[key]
	return Status{
		BlockedBy:       blocking[:min(len(blocking), MaxBlockedBy)],
		BlockedByCount:  int32(len(blocking)),
		DependentsCount: int32(len(g.dependents[key])),
		Cyclic:          cyclic,
	}
}
