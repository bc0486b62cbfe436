package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Backend is one database of the store and the state that it is checked at.
type Backend struct {
	Name    string
	Session backend.Session
	// LastID and LastRev are those of the newest version that is looked at.
	LastID, LastRev int64
	// Mark is the floor as the database keeps it.
	Mark int64
}

// Store is what is checked.
type Store struct {
	// Backends are those of the topology, the default one first.
	Backends []Backend
	// Route is the index of a key's backend.
	Route func(key string) int
	// Floor is the compaction's; versions that were replaced below it may be
	// deleted already.
	Floor int64
}

// Run checks everything. An error means that it could not be checked; what is
// wrong with what could be is in the report.
func Run(ctx context.Context, store Store) (Report, error) {
	r := &reporter{counts: map[[2]string]int{}}
	r.report.Breaches = []Breach{}
	checks := make([]*check, len(store.Backends))
	for i, b := range store.Backends {
		checks[i] = &check{Backend: b, index: i, store: &store, reporter: r, live: map[string]row{}}
		if err := checks[i].run(ctx); err != nil {
			return r.report, fmt.Errorf("check the backend %q: %w", b.Name, err)
		}
	}
	together(checks)
	granted := map[int64]int64{}
	for _, c := range checks {
		if err := c.leases(ctx, granted); err != nil {
			return r.report, fmt.Errorf("check the leases of the backend %q: %w", c.Name, err)
		}
		r.report.Backends = append(r.report.Backends, BackendReport{
			Name: c.Name, Keys: int64(len(c.live)), Versions: c.count, Leases: c.leaseCount, Revision: c.LastRev,
		})
	}
	slices.SortStableFunc(r.report.Breaches, func(a, b Breach) int {
		return cmp.Or(cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return r.report, nil
}

// row is what is kept of a version.
type row struct {
	id, rev, create, version, lease int64
}

// check is the check of one backend.
type check struct {
	Backend
	*reporter
	index int
	store *Store

	live       map[string]row // by key
	revs       []int64        // above the floor, rising, each once
	count      int64
	leaseCount int64

	lastID, lastRev, lastSub int64
	inRev                    map[string]bool // keys of lastRev
}

func (c *check) breach(rule, key, format string, args ...any) {
	c.add(rule, c.Name, key, format, args...)
}

func (c *check) run(ctx context.Context) error {
	if err := c.Session.Scan(ctx, 0, c.LastID, true, func(v *backend.Version) error {
		c.next(v)
		return ctx.Err()
	}); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// The rest of this backend can't be told right from wrong.
		c.breach("unreadable", "", "after the version %d: %v", c.lastID, err)
		return nil
	}
	if err := c.keyIndex(ctx); err != nil {
		return err
	}
	c.meta()
	for key := range c.live {
		if lane := c.store.Route(key); lane != c.index {
			c.breach("route", key, "its route leads to the backend %q", c.store.Backends[lane].Name)
		}
	}
	return nil
}

// next looks at the next version in order of IDs.
func (c *check) next(v *backend.Version) {
	key := string(v.Key)
	c.count++
	switch {
	case v.Rev < c.lastRev:
		c.breach("order", key, "the version %d has revision %d, after one with %d", v.ID, v.Rev, c.lastRev)
	case v.Rev == c.lastRev && v.Sub <= c.lastSub:
		c.breach("order", key, "the version %d has position %d in revision %d, after %d", v.ID, v.Sub, v.Rev, c.lastSub)
	case v.Rev == c.lastRev && c.inRev[key]:
		c.breach("order", key, "it changed twice at revision %d", v.Rev)
	}
	if c.lastRev > c.store.Floor && v.ID != c.lastID+1 {
		c.breach("versions", key, "the versions between %d and %d are gone, and no compaction has come so far", c.lastID, v.ID)
	}
	if v.Rev > c.LastRev {
		c.breach("meta", key, "the version %d has revision %d, above the newest one that the backend says it holds, %d", v.ID, v.Rev, c.LastRev)
	}
	if v.Rev != c.lastRev {
		c.inRev = map[string]bool{}
		if v.Rev > c.store.Floor {
			c.revs = append(c.revs, v.Rev)
		}
	}
	c.inRev[key] = true
	c.numbers(v, key)
	before, existed := c.live[key]
	c.follows(v, key, before, existed)
	if v.Deleted {
		delete(c.live, key)
	} else {
		c.live[key] = row{v.ID, v.Rev, v.Create, v.Version, v.Lease}
	}
	c.lastID, c.lastRev, c.lastSub = v.ID, v.Rev, v.Sub
}

// numbers looks at one version alone.
func (c *check) numbers(v *backend.Version, key string) {
	switch {
	case v.Deleted && (v.Create != 0 || v.Version != 0 || len(v.Value) > 0):
		c.breach("versions", key, "the deletion %d has a version or a value", v.ID)
	case v.Deleted:
	case v.Create > v.Rev:
		c.breach("versions", key, "at revision %d it was created at a later one, %d", v.Rev, v.Create)
	case v.Version < 1:
		c.breach("versions", key, "at revision %d its version is %d", v.Rev, v.Version)
	case (v.Create == v.Rev) != (v.Version == 1):
		c.breach("versions", key, "at revision %d, created at %d, its version is %d", v.Rev, v.Create, v.Version)
	}
}

// follows compares a version with the one that it replaced, where that must
// still be there.
func (c *check) follows(v *backend.Version, key string, before row, existed bool) {
	if v.Rev <= c.store.Floor {
		return
	}
	switch {
	case v.Prev == 0 && existed:
		c.breach("versions", key, "the version %d says that the key was absent, and it was there", v.ID)
	case v.Prev == 0 && !v.Deleted && v.Version != 1:
		c.breach("versions", key, "the version %d has replaced none and is its version %d", v.ID, v.Version)
	case v.Prev == 0:
	case !existed:
		c.breach("versions", key, "the version %d has replaced %d, which is not there", v.ID, v.Prev)
	case before.id != v.Prev:
		c.breach("versions", key, "the version %d has replaced %d, and the one before is %d", v.ID, v.Prev, before.id)
	case !v.Deleted && (v.Create != before.create || v.Version != before.version+1):
		c.breach("versions", key, "created at %d, version %d follows created at %d, version %d", v.Create, v.Version, before.create, before.version)
	}
}

// keyIndex compares the database's index of keys with its rows.
func (c *check) keyIndex(ctx context.Context) error {
	seen := 0
	err := c.Session.Newest(ctx, nil, nil, c.LastID, func(v *backend.Version) error {
		key := string(v.Key)
		found, live := c.live[key]
		switch {
		case v.Deleted && live, !v.Deleted && !live, live && found.id != v.ID:
			c.breach("unreadable", key, "the index says that %d is its newest version (deleted: %t), and the rows say %d (there: %t)", v.ID, v.Deleted, found.id, live)
		case live && (found != row{v.ID, v.Rev, v.Create, v.Version, v.Lease}):
			c.breach("unreadable", key, "the index has other numbers than the row %d", v.ID)
		}
		if !v.Deleted {
			seen++
		}
		return ctx.Err()
	})
	if err == nil && seen != len(c.live) {
		c.breach("unreadable", "", "the index has %d keys, and the rows have %d", seen, len(c.live))
	}
	return err
}
