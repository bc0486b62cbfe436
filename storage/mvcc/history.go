package mvcc

import (
	"context"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// recentTreesMax are kept for paged lists and for reads at revisions
	// that are asked for repeatedly.
	recentTreesMax = 16
	// recentTreesIdle is how long one is kept without being used: longer
	// than a client takes between two pages.
	recentTreesIdle = time.Minute
)

// recentTrees are trees at older revisions. They share all nodes that have not
// changed since with the present one.
//
// A write that was pending when a later one was acknowledged (by another
// backend) is missing in the trees of revisions above it; when it is
// acknowledged, those trees are dropped, and with the generation those that
// are just being made.
type recentTrees struct {
	mu         sync.Mutex
	trees      map[int64]*recentTree
	generation int64
}

type recentTree struct {
	tree tree
	used time.Time
}

func (r *recentTrees) get(rev int64) (tree, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, ok := r.trees[rev]
	if !ok {
		return tree{}, false
	}
	kept.used = time.Now()
	return kept.tree, true
}

// begin must be called before the tree is taken that put is given.
func (r *recentTrees) begin() (generation int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation
}

func (r *recentTrees) put(generation, rev int64, t tree) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if generation != r.generation {
		return
	}
	if r.trees == nil {
		r.trees = map[int64]*recentTree{}
	}
	if _, ok := r.trees[rev]; !ok && len(r.trees) >= recentTreesMax {
		oldest := int64(-1)
		for candidate, kept := range r.trees {
			if oldest < 0 || kept.used.Before(r.trees[oldest].used) {
				oldest = candidate
			}
		}
		delete(r.trees, oldest)
	}
	r.trees[rev] = &recentTree{tree: t, used: time.Now()}
}

// expire forgets the trees that nobody used for a while.
func (r *recentTrees) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for rev, kept := range r.trees {
		if time.Since(kept.used) > recentTreesIdle {
			delete(r.trees, rev)
		}
	}
}

// invalidate drops the trees from a revision on.
func (r *recentTrees) invalidate(from int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.generation++
	for rev := range r.trees {
		if rev >= from {
			delete(r.trees, rev)
		}
	}
}

// past finds or makes the tree at a revision out of memory: the present tree
// with the events of the ring undone, which costs what has changed since.
func (s *shard) past(rev int64) (tree, bool) {
	if t, ok := s.recent.get(rev); ok {
		return t, true
	}
	generation := s.recent.begin()
	t, events, ok := s.hub.since(s.index, rev+1)
	if !ok {
		return tree{}, false
	}
	t = undo(t, events, rev)
	s.recent.put(generation, rev, t)
	return t, true
}

// stored reads the span as it was at rev from the database: the first limit
// items (0: all, -1: none) and how many there are.
func (s *shard) stored(ctx context.Context, sp span, rev int64, limit int) (items []*item, count int, err error) {
	session, err := s.current()
	if err != nil {
		return nil, 0, err
	}
	upTo, err := s.lastIDAt(ctx, session, rev)
	if err != nil {
		return nil, 0, err
	}
	from, end := sp.bounds()
	err = session.Newest(ctx, from, end, upTo, func(v *backend.Version) error {
		if v.Deleted {
			return nil
		}
		count++
		if limit == 0 || count <= limit {
			items = append(items, itemOf(v))
		}
		return nil
	})
	return items, count, err
}

// lastIDAt is the ID of the newest version whose revision is at most rev. The
// revision never decreases with the ID, so it is found by bisection; the first
// guess is right where every revision has one version.
func (s *shard) lastIDAt(ctx context.Context, session backend.Session, rev int64) (int64, error) {
	// Every version up to low has a revision of at most rev, every one from
	// high on a greater one.
	low, high := int64(0), s.lastID.Load()+1
	guess := min(max(rev-1, low+1), high)
	for step := int64(1); low+1 < high; step++ {
		middle := low + (high-low)/2
		if step <= 2 {
			middle = min(max(guess, low+1), high-1)
		}
		id, found, next, err := session.Next(ctx, middle)
		if err != nil {
			return 0, err
		}
		switch {
		case !next || id >= high || found > rev:
			// The first version at or after middle is beyond rev.
			high = middle
			guess = middle - 1
		default:
			low = id
			guess = id + 1 + (rev - found)
		}
	}
	return low, nil
}
