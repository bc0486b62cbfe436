package mvcc

import (
	"context"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// BackendStatus is what is known of one backend now.
type BackendStatus struct {
	Name string
	Kind string
	Keys int
	// Size is as last measured, zero before.
	Size backend.Size
	// Revision is the newest one of this backend, Written how many versions
	// were ever stored in it.
	Revision, Written int64
	// Down is why it does not answer, nil normally.
	Down error
}

// Backends is the condition of all backends, in the order of the options.
func (s *Store) Backends() []BackendStatus {
	all := make([]BackendStatus, len(s.shards))
	for i, shard := range s.shards {
		all[i] = BackendStatus{Name: shard.name, Kind: shard.database.Kind(), Written: shard.lastID.Load()}
		if size := shard.size.Load(); size != nil {
			all[i].Size = *size
		}
		if reason := shard.down.Load(); reason != nil {
			all[i].Down = *reason
		}
		all[i].Keys = shard.tree().count(span{open: true})
		s.sequencer.mu.Lock()
		all[i].Revision = s.sequencer.lanes[i].newest
		s.sequencer.mu.Unlock()
	}
	return all
}

// Keys calls fn with every key that lives now and the index of its backend,
// until fn returns false.
func (s *Store) Keys(fn func(backend int, key string) bool) {
	more := true
	for i, shard := range s.shards {
		if !more {
			return
		}
		shard.tree().ascend(span{open: true}, func(found *item) bool {
			more = fn(i, found.key)
			return more
		})
	}
}

// Row is where a key's newest version is stored, and its numbers.
type Row struct {
	ID                            int64
	Create, Mod, Version, LeaseID int64
}

// Locate finds the row of a key in the index of its backend; found is false
// where there is none.
func (s *Store) Locate(key string) (row Row, found bool) {
	i := s.shards[s.laneOf(key)].tree().get(key)
	if i == nil {
		return Row{}, false
	}
	return Row{ID: i.id, Create: i.create, Mod: i.mod, Version: i.version, LeaseID: i.lease}, true
}

// Inspected is a backend and the state that an inspection may look at.
type Inspected struct {
	Name            string
	Session         backend.Session
	LastID, LastRev int64
	Mark            int64
}

// Inspect calls fn with the sessions of all backends; nothing above floor is
// deleted until it returns. fn only reads. It fails if a backend is down.
func (s *Store) Inspect(ctx context.Context, fn func(ctx context.Context, floor int64, backends []Inspected) error) error {
	floor := s.sequencer.compacted()
	release, err := s.Pin(floor)
	if err != nil {
		return err
	}
	defer release()
	var backends []Inspected
	for i, shard := range s.shards {
		session, err := shard.current()
		if err != nil {
			return err
		}
		// A deletion that is under way would be seen half done.
		if err := shard.sweeper.idle(ctx, floor); err != nil {
			return err
		}
		// The ID comes first: its revision is acknowledged then.
		one := Inspected{Name: shard.name, Session: session, LastID: shard.lastID.Load(), Mark: session.State().Floor}
		s.sequencer.mu.Lock()
		one.LastRev = s.sequencer.lanes[i].newest
		s.sequencer.mu.Unlock()
		backends = append(backends, one)
	}
	return fn(ctx, floor, backends)
}

// Count is how many keys of [from, end) live now; an empty end is no bound.
func (s *Store) Count(from, end string) (count int64) {
	for _, shard := range s.shards {
		count += int64(shard.tree().count(span{from: from, end: end, open: end == ""}))
	}
	return count
}
