package view

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// Defaults of [Options].
const (
	DefaultHistory   = 8192
	DefaultKeepPages = 5 * time.Minute
)

// Numbers hands out resource versions. [sequence.Numbers] is the real one.
//
// [sequence.Numbers]: https://pkg.go.dev/github.com/taskctl-dev/taskctl/aggregator/sequence
type Numbers interface {
	// Next returns a number above all that were ever returned before, by this
	// process or an earlier one. It may block, until ctx ends.
	Next(ctx context.Context) (uint64, error)
}

// Options configure a View.
type Options struct {
	// Resource names the resource in errors. Required.
	Resource schema.GroupResource
	// ClusterScoped is set for a kind without namespaces.
	ClusterScoped bool
	// New makes an empty object of the kind, for bookmarks. Required.
	New func() runtime.Object
	// Numbers are the resource versions. Required.
	Numbers Numbers
	// History is how many changes are held for watches and exact reads.
	// Default [DefaultHistory].
	History int
	// KeepPages is how long the snapshot of a paged list is kept after its
	// first page. Default [DefaultKeepPages].
	KeepPages time.Duration
	// Clock is the real one by default.
	Clock clock.WithTicker
}

// View holds the newest state, its history, and the snapshots of paged lists.
// Make one with [New]; its methods are safe for concurrent use.
type View struct {
	options Options

	// writing serialises Populate and Commit over waiting for numbers, so that
	// changes get their numbers in the order in which they are applied.
	writing sync.Mutex

	// mu guards everything below. Nothing blocks while it is held.
	mu        sync.RWMutex
	populated bool
	tree      *btree.BTreeG[*Row]
	counts    map[string]int64 // objects per namespace
	history   *history
	current   *snapshot // of the newest state; nil after a change
	pages     map[uint64]keptPages
	changed   chan struct{} // closed at the next change

	watches sync.WaitGroup
	closed  chan struct{} // closed by Close
}

// New makes an empty View that is not populated yet.
func New(options Options) *View {
	if options.History == 0 {
		options.History = DefaultHistory
	}
	if options.KeepPages == 0 {
		options.KeepPages = DefaultKeepPages
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &View{
		options: options,
		tree:    newTree(),
		counts:  map[string]int64{},
		history: newHistory(options.History),
		pages:   map[uint64]keptPages{},
		changed: make(chan struct{}),
		closed:  make(chan struct{}),
	}
}

// Close ends all watches and waits for them. The View must not be used after.
func (v *View) Close() {
	v.mu.Lock()
	close(v.closed)
	v.mu.Unlock()
	v.watches.Wait()
}

// Populated tells whether reads are answered.
func (v *View) Populated() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.populated
}

// Ready returns an error until reads are answered.
func (v *View) Ready() error {
	if !v.Populated() {
		return errNotPopulated(v.options.Resource)
	}
	return nil
}

// Populate sets the first state, one number for each item and one for the
// state before them, so that an empty list has a number too. It may be called
// once. The error is that of [Numbers].
func (v *View) Populate(ctx context.Context, items []Item) error {
	v.writing.Lock()
	defer v.writing.Unlock()
	if v.Populated() {
		return errors.New("populate a view twice")
	}
	newest, err := v.options.Numbers.Next(ctx)
	if err != nil {
		return fmt.Errorf("take a number: %w", err)
	}
	rows := make([]*Row, 0, len(items))
	for _, item := range items {
		rows = append(rows, &Row{Item: item, key: item.Key()})
	}
	sort.Slice(rows, func(i, j int) bool { return lessRow(rows[i], rows[j]) })
	for _, row := range rows {
		if newest, err = v.options.Numbers.Next(ctx); err != nil {
			return fmt.Errorf("take a number: %w", err)
		}
		row.Number = newest
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	for _, row := range rows {
		v.put(row)
	}
	v.history.reset(newest)
	v.populated = true
	v.publish()
	return nil
}

// Change is what [View.Commit] applies: the object's new state, or its
// deletion when Item is nil.
type Change struct {
	Key  Key
	Item Item
}

// Commit applies changes in order, each with a number of its own. Watches see
// them from then on. A deletion of what does not exist is dropped. The error is
// that of [Numbers]; nothing was applied then.
func (v *View) Commit(ctx context.Context, changes ...Change) error {
	v.writing.Lock()
	defer v.writing.Unlock()
	numbers := make([]uint64, 0, len(changes))
	for range changes {
		number, err := v.options.Numbers.Next(ctx)
		if err != nil {
			return fmt.Errorf("take a number: %w", err)
		}
		numbers = append(numbers, number)
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	for i, c := range changes {
		v.apply(c, numbers[i])
	}
	v.publish()
	return nil
}

func (v *View) apply(c Change, number uint64) {
	if c.Item == nil {
		before, found := v.tree.Delete(&Row{key: c.Key})
		if !found {
			return
		}
		v.count(c.Key.Namespace, -1)
		v.history.add(change{number: number, before: before})
		return
	}
	after := &Row{Item: c.Item, Number: number, key: c.Key}
	before := v.put(after)
	v.history.add(change{number: number, before: before, after: after})
}

// put stores a row and returns the one that it replaces, if any.
func (v *View) put(row *Row) *Row {
	before, replaced := v.tree.ReplaceOrInsert(row)
	if !replaced {
		v.count(row.key.Namespace, 1)
		return nil
	}
	return before
}

func (v *View) count(namespace string, difference int64) {
	v.counts[namespace] += difference
	if v.counts[namespace] == 0 {
		delete(v.counts, namespace)
	}
}

// publish lets readers see what was applied.
func (v *View) publish() {
	v.current = nil
	v.dropPages()
	close(v.changed)
	v.changed = make(chan struct{})
}
