package relations

import (
	"sync"
)

// Key names a task. Namespace is "" for a kind without namespaces. Tasks depend
// on tasks in their own namespace.
type Key struct{ Namespace, Name string }

func (k Key) sibling(name string) Key { return Key{k.Namespace, name} }

// Task is what the graph knows of one task.
type Task struct {
	// DependsOn are names. The graph keeps the slice and never changes it.
	DependsOn []string
	Finished  bool
	// Shown is what the task's status says, whether it is right or not.
	Shown Status
}

// Graph is the whole graph of one kind. Make it with New.
type Graph struct {
	changed func(Key)

	mu         sync.RWMutex
	tasks      map[Key]Task
	dependents map[Key]map[Key]struct{} // of names that nothing exists under too
	cyclic     map[Key]struct{}         // tasks that are part of a cycle
	seen       uint64                   // the version up to which tasks are known
	written    map[Key]writtenTask      // written here, above seen
	synced     bool
}

// writtenTask is what was written here and not seen by the watch yet.
type writtenTask struct {
	dependsOn []string
	version   uint64
}

// New makes an empty graph. changed is called, in any order and with a lock
// held, for each task whose Status may have changed, or may not be what the
// task shows.
func New(changed func(Key)) *Graph {
	return &Graph{
		changed:    changed,
		tasks:      map[Key]Task{},
		dependents: map[Key]map[Key]struct{}{},
		cyclic:     map[Key]struct{}{},
		written:    map[Key]writtenTask{},
	}
}

// Synced tells whether Replace was called.
func (g *Graph) Synced() bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.synced
}

// Replace says what tasks there are at a version.
func (g *Graph) Replace(tasks map[Key]Task, version uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tasks, g.dependents = tasks, map[Key]map[Key]struct{}{}
	for key, task := range tasks {
		g.index(key, task)
	}
	g.cyclic = map[Key]struct{}{}
	for _, key := range onCycles(g, tasks) {
		g.cyclic[key] = struct{}{}
	}
	g.saw(version)
	g.synced = true
	for key := range tasks {
		g.changed(key)
	}
}

// Set says what a task is since a version.
func (g *Graph) Set(key Key, task Task, version uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old, existed := g.tasks[key]
	g.unindex(key, old)
	g.tasks[key] = task
	g.index(key, task)
	g.saw(version)
	g.recheck(key, old.DependsOn, task.DependsOn)
	g.changed(key)
	if !existed || old.Finished != task.Finished {
		g.changedDependents(key)
	}
	g.changedTargets(key, old.DependsOn, task.DependsOn)
}

// Remove says that a task is gone since a version.
func (g *Graph) Remove(key Key, version uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.tasks[key]
	g.unindex(key, old)
	delete(g.tasks, key)
	g.saw(version)
	g.recheck(key, old.DependsOn, nil)
	g.changedDependents(key)
	g.changedTargets(key, old.DependsOn, nil)
}

// Wrote says what a task depends on since it was written at a version, which
// Set or Replace may have told already, or will tell.
func (g *Graph) Wrote(key Key, dependsOn []string, version uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if version > g.seen {
		g.written[key] = writtenTask{dependsOn, version}
	}
}

// saw forgets what was written up to a version: tasks have it now.
func (g *Graph) saw(version uint64) {
	g.seen = max(g.seen, version)
	for key, written := range g.written {
		if written.version <= g.seen {
			delete(g.written, key)
		}
	}
}

// dependsOn is what a task depends on as far as is known, what was written here
// included.
func (g *Graph) dependsOn(key Key) []string {
	if written, found := g.written[key]; found {
		return written.dependsOn
	}
	return g.tasks[key].DependsOn
}

func (g *Graph) index(key Key, task Task) {
	for _, name := range task.DependsOn {
		target := key.sibling(name)
		if g.dependents[target] == nil {
			g.dependents[target] = map[Key]struct{}{}
		}
		g.dependents[target][key] = struct{}{}
	}
}

func (g *Graph) unindex(key Key, task Task) {
	for _, name := range task.DependsOn {
		target := key.sibling(name)
		delete(g.dependents[target], key)
		if len(g.dependents[target]) == 0 {
			delete(g.dependents, target)
		}
	}
}

func (g *Graph) changedDependents(key Key) {
	for dependent := range g.dependents[key] {
		g.changed(dependent)
	}
}

// changedTargets tells of the tasks that gained or lost a dependent.
func (g *Graph) changedTargets(key Key, before, after []string) {
	count := map[string]int{}
	for _, name := range before {
		count[name]--
	}
	for _, name := range after {
		count[name]++
	}
	for name, difference := range count {
		if _, exists := g.tasks[key.sibling(name)]; exists && difference != 0 {
			g.changed(key.sibling(name))
		}
	}
}
