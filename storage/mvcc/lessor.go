package mvcc

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// minLeaseTTL and maxLeaseTTL are etcd's, in seconds; the least follows
	// from its default election timeout.
	minLeaseTTL = 2
	maxLeaseTTL = 9000000000
)

// lessor knows the leases that are stored, their deadlines and their keys. The
// rows of a lease and of its keys are written by the shards' writers; what is
// here follows them, so that it never tells of a lease that a crash would
// lose.
type lessor struct {
	mu     sync.Mutex
	leases map[int64]*lease
}

// lease is one lease.
type lease struct {
	id       int64
	ttl      int64
	deadline time.Time
	// extended is the deadline that a renewal is about to store.
	extended time.Time
	keys     map[string]struct{}
	lanes    map[int]struct{} // where its row is stored
	revoking bool
	revoked  chan struct{}
}

// leaseChange moves a key from one lease to another; 0 is none.
type leaseChange struct {
	key      string
	from, to int64
}

func newLessor() *lessor { return &lessor{leases: map[int64]*lease{}} }

// alive says whether keys may be put under the lease.
func (l *lessor) alive(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.leases[id]
	return found != nil && !found.revoking
}

// get returns the lease, or nil; only its fixed fields may be read without the
// lock.
func (l *lessor) get(id int64) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases[id]
}

// add makes a stored lease known, with the deadline that its row has. The row's
// clock is the wall clock; from here on the monotonic one counts.
func (l *lessor) add(row backend.Lease, lane int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	deadline := time.Now().Add(time.Until(time.UnixMilli(row.Deadline)))
	found := l.leases[row.ID]
	if found == nil {
		found = &lease{
			id: row.ID, ttl: row.TTL, keys: map[string]struct{}{},
			lanes: map[int]struct{}{}, revoked: make(chan struct{}),
		}
		l.leases[row.ID] = found
	}
	if deadline.After(found.deadline) {
		found.deadline = deadline
	}
	found.lanes[lane] = struct{}{}
}

// extend says that a renewal up to the deadline is being stored: an expiry that
// is already on its way must not take the lease any more.
func (l *lessor) extend(id int64, deadline time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.leases[id]
	if found == nil || found.revoking {
		return false
	}
	if deadline.After(found.extended) {
		found.extended = deadline
	}
	return true
}

// renewed moves the deadline.
func (l *lessor) renewed(id int64, deadline time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.leases[id]; found != nil && deadline.After(found.deadline) {
		found.deadline = deadline
	}
}

// begin marks the lease as being revoked. With expired it must have run out.
func (l *lessor) begin(id int64, expired bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.leases[id]
	if found == nil || found.revoking {
		return false
	}
	now := time.Now()
	if expired && (now.Before(found.deadline) || now.Before(found.extended)) {
		return false
	}
	found.revoking = true
	return true
}

// abandon takes begin back: the revocation was not stored.
func (l *lessor) abandon(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.leases[id]; found != nil {
		found.revoking = false
	}
}

// remove forgets a lease whose revocation is stored.
func (l *lessor) remove(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.leases[id]; found != nil {
		delete(l.leases, id)
		close(found.revoked)
	}
}

// apply follows stored changes of keys.
func (l *lessor) apply(changes []leaseChange) {
	if len(changes) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		if from := l.leases[c.from]; from != nil {
			delete(from.keys, c.key)
		}
		if to := l.leases[c.to]; to != nil {
			to.keys[c.key] = struct{}{}
		}
	}
}

// keysOf returns the lease's keys in order.
func (l *lessor) keysOf(id int64) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.leases[id]
	if found == nil {
		return nil
	}
	keys := make([]string, 0, len(found.keys))
	for key := range found.keys {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// remaining returns the granted and the remaining time in whole seconds.
func (l *lessor) remaining(id int64) (ttl, rest int64, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.leases[id]
	if one == nil {
		return 0, 0, false
	}
	return one.ttl, int64(time.Until(one.deadline).Seconds()), true
}

// all returns the leases' IDs, the first to expire first.
func (l *lessor) all() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	leases := make([]*lease, 0, len(l.leases))
	for _, one := range l.leases {
		leases = append(leases, one)
	}
	slices.SortFunc(leases, func(a, b *lease) int {
		return cmp.Or(a.deadline.Compare(b.deadline), cmp.Compare(a.id, b.id))
	})
	ids := make([]int64, len(leases))
	for i, one := range leases {
		ids[i] = one.id
	}
	return ids
}

// expired returns at most limit leases whose time has run out.
func (l *lessor) expired(limit int) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var ids []int64
	for id, one := range l.leases {
		if len(ids) == limit {
			break
		}
		if !one.revoking && now.After(one.deadline) && now.After(one.extended) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// hasExpired says whether the lease's time has run out.
func (l *lessor) hasExpired(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.leases[id]
	return one != nil && (one.revoking || time.Now().After(one.deadline))
}

// missingOn returns the lease's row and whether the lane's database does not
// have it. A key that keeps the number of a lease that is gone needs none.
func (l *lessor) missingOn(id int64, lane int) (backend.Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.leases[id]
	if one == nil {
		return backend.Lease{}, false
	}
	if _, stored := one.lanes[lane]; stored {
		return backend.Lease{}, false
	}
	return backend.Lease{ID: id, TTL: one.ttl, Deadline: time.Now().Add(time.Until(one.deadline)).UnixMilli()}, true
}

// copied notes that the lane's database has the rows now.
func (l *lessor) copied(ids []int64, lane int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if one := l.leases[id]; one != nil {
			one.lanes[lane] = struct{}{}
		}
	}
}

// lanesOf returns where the lease's row is stored.
func (l *lessor) lanesOf(id int64) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.leases[id]
	if one == nil {
		return nil
	}
	lanes := make([]int, 0, len(one.lanes))
	for lane := range one.lanes {
		lanes = append(lanes, lane)
	}
	slices.Sort(lanes)
	return lanes
}

// replace makes the lessor know of the lane what its database holds. A key
// whose lease is not stored anywhere keeps the number and never expires, as in
// etcd.
func (l *lessor) replace(lane int, laneOf func(string) int, c *contents) {
	for _, row := range c.leases {
		l.add(row, lane)
	}
	l.mu.Lock()
	for id, one := range l.leases {
		for key := range one.keys {
			if laneOf(key) == lane {
				delete(one.keys, key)
			}
		}
		if slices.ContainsFunc(c.leases, func(row backend.Lease) bool { return row.ID == id }) {
			continue
		}
		delete(one.lanes, lane)
		if len(one.lanes) == 0 {
			delete(l.leases, id)
			close(one.revoked)
		}
	}
	l.mu.Unlock()
	l.apply(c.attached)
}
