package verify

import (
	"cmp"
	"context"
	"slices"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// meta checks what a database says of itself.
func (c *check) meta() {
	newest := int64(0)
	for _, b := range c.store.Backends {
		newest = max(newest, b.LastRev)
	}
	// The mark is one above the floor.
	if c.Mark-1 > newest {
		c.breach("meta", "", "everything below revision %d is compacted, and the store has only come to %d", c.Mark-1, newest)
	}
	if c.LastRev < 1 {
		c.breach("meta", "", "its newest revision is %d", c.LastRev)
	}
	if c.lastID < c.LastID && c.lastRev > c.store.Floor {
		// The newest version is deleted by a compaction only if it is a
		// tombstone below the floor.
		c.breach("meta", "", "its newest version should be %d, and is %d", c.LastID, c.lastID)
	}
}

// together checks what must hold over all backends: a key is in one of them,
// and a revision was given to one write.
func together(checks []*check) {
	for i, c := range checks {
		for _, other := range checks[:i] {
			for key, found := range c.live {
				if there, twice := other.live[key]; twice {
					c.breach("twice", key, "it is here at revision %d, and in the backend %q at %d", found.rev, other.Name, there.rev)
				}
			}
		}
	}
	type given struct {
		rev   int64
		check *check
	}
	var all []given
	for _, c := range checks {
		for _, rev := range c.revs {
			all = append(all, given{rev, c})
		}
	}
	slices.SortStableFunc(all, func(a, b given) int { return cmp.Compare(a.rev, b.rev) })
	for i := 1; i < len(all); i++ {
		if all[i].rev == all[i-1].rev && all[i].check != all[i-1].check {
			all[i].check.breach("order", "", "the revision %d was given to a write here and to one of the backend %q", all[i].rev, all[i-1].check.Name)
		}
	}
}

// leases checks that the leases of keys exist beside them, where their expiry
// is looked for. What was revoked while the rows were read is no breach: the key
// is gone too, then. elsewhere are the granted times in the backends before.
func (c *check) leases(ctx context.Context, elsewhere map[int64]int64) error {
	known := map[int64]bool{}
	err := c.Session.Leases(ctx, func(lease backend.Lease) error {
		c.leaseCount++
		known[lease.ID] = true
		if ttl, there := elsewhere[lease.ID]; there && ttl != lease.TTL {
			c.breach("lease", "", "the lease %x was granted %d s here and %d s elsewhere", lease.ID, lease.TTL, ttl)
		}
		elsewhere[lease.ID] = lease.TTL
		return nil
	})
	if err != nil {
		return err
	}
	for key, found := range c.live {
		if found.lease == 0 || known[found.lease] {
			continue
		}
		still, err := c.stillThere(ctx, key, found)
		if err != nil {
			return err
		}
		if still {
			c.breach("lease", key, "it is under the lease %x, which is not there", found.lease)
		}
	}
	return nil
}

// stillThere says that a row is its key's newest now.
func (c *check) stillThere(ctx context.Context, key string, found row) (bool, error) {
	still := false
	err := c.Session.Newest(ctx, []byte(key), []byte(key+"\x00"), 1<<62, func(v *backend.Version) error {
		still = v.ID == found.id
		return nil
	})
	return still, err
}
