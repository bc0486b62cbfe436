package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Moved is what a move did.
type Moved struct {
	Keys int `json:"keys"`
	// Revision is where the store goes on; older ones are compacted.
	Revision int64 `json:"revision"`
	// SHA256 is over all keys that were moved, with numbers and values, in
	// the order of keys; it was the same in the sources and in the targets.
	SHA256 string `json:"sha256"`
}

// Move brings every key to the backend that the configuration's rules name, in
// a store that does not run. Revisions, create revisions, versions and leases
// are kept; history is not: the store is compacted at the end. Backends that
// the data folder remembers and the configuration has no more are emptied, too.
//
// It may be killed at any time: until Move is called again, and has ended, the
// store does not open. Nothing is deleted in a source before all targets were
// read back and hold the same. progress is told how many keys of how many were
// stored in their targets, or deleted in their sources.
func Move(ctx context.Context, config Config, progress func(step string, done, total int)) (moved Moved, err error) {
	past, err := recall(config.DataDir)
	if err != nil {
		return moved, err
	}
	databases, err := OpenDatabases(ctx, config)
	if err != nil {
		return moved, err
	}
	defer func() { err = errors.Join(err, databases.Close()) }()
	topology := Topology{Backends: databases.specs, Rules: databases.Router.Rules()}
	now := placementOf(topology, 0)
	if past.Moving != nil && !past.Moving.same(now) {
		return moved, fmt.Errorf("a move to other routes has not ended (%s): end that one first", describe(*past.Moving))
	}
	for _, b := range past.gone(now) {
		opened, err := databases.open(ctx, asBackend(b))
		if err != nil {
			return moved, fmt.Errorf("%w; put the backend back into the storage, without routes", err)
		}
		databases.Backends = append(databases.Backends, opened)
	}
	m := &mover{databases: databases, progress: progress, leases: map[int64]backend.Lease{}}
	ctx, stop := m.keepOwnership(ctx)
	defer stop()
	if err := m.load(ctx); err != nil {
		return moved, err
	}
	past.Moving = &now
	if err := past.save(config.DataDir); err != nil {
		return moved, err
	}
	if moved, err = m.run(ctx); err != nil {
		return moved, fmt.Errorf("%w; nothing is lost: call the move again", err)
	}
	now.Revision = moved.Revision
	past.Moving = nil
	past.add(now)
	return moved, past.save(config.DataDir)
}

func describe(p placement) string {
	var names []string
	for _, b := range p.Backends {
		names = append(names, b.Name+"="+b.Spec)
	}
	return fmt.Sprint(names)
}

// mover is one run of Move.
type mover struct {
	databases *Databases
	progress  func(step string, done, total int)
	places    []*movedPlace
	leases    map[int64]backend.Lease
	revision  int64 // of the deletions in the sources; above all that there is
	total     int
}

// movedPlace is a backend with what it holds.
type movedPlace struct {
	*OpenBackend
	lastID, lastRev int64
	newest          map[string]*backend.Version // tombstones, too
	leases          map[int64]bool
	misplaced       []*backend.Version // live, in order of keys
	targets         []int              // of misplaced
}

// load finds out what is where and what has to go.
func (m *mover) load(ctx context.Context) error {
	for i := range m.databases.Backends {
		p := &movedPlace{OpenBackend: &m.databases.Backends[i], newest: map[string]*backend.Version{}, leases: map[int64]bool{}}
		m.places = append(m.places, p)
		state := p.Session.State()
		p.lastID, p.lastRev = state.LastID, state.LastRev
		m.revision = max(m.revision, state.LastRev+1, state.Floor+1)
		err := p.Session.Newest(ctx, nil, nil, state.LastID, func(v *backend.Version) error {
			p.newest[string(v.Key)] = v
			if target := m.databases.Router.Route(string(v.Key)); target != i && !v.Deleted {
				p.misplaced = append(p.misplaced, v)
				p.targets = append(p.targets, target)
			}
			return nil
		})
		if err == nil {
			err = p.Session.Leases(ctx, func(l backend.Lease) error {
				p.leases[l.ID] = true
				if l.Deadline >= m.leases[l.ID].Deadline {
					m.leases[l.ID] = l
				}
				return nil
			})
		}
		if err != nil {
			return fmt.Errorf("read backend %q: %w", p.Name, err)
		}
		m.total += len(p.misplaced)
	}
	return nil
}

// run copies, compares, deletes and lifts all backends above what they were.
func (m *mover) run(ctx context.Context) (Moved, error) {
	done := 0
	for _, source := range m.places {
		for from := 0; from < len(source.misplaced); from += movePiece {
			to := min(from+movePiece, len(source.misplaced))
			if err := m.copy(ctx, source, from, to); err != nil {
				return Moved{}, err
			}
			done += to - from
			m.progress("copied", done, m.total)
		}
	}
	sum, err := m.compare(ctx)
	if err != nil {
		return Moved{}, err
	}
	done = 0
	for _, source := range m.places {
		for from := 0; from < len(source.misplaced); from += movePiece {
			to := min(from+movePiece, len(source.misplaced))
			var doomed []backend.Version
			for _, v := range source.misplaced[from:to] {
				doomed = append(doomed, backend.Version{Rev: m.revision, Sub: int64(done + len(doomed)), Prev: v.ID, Deleted: true, Key: v.Key})
			}
			if err := source.append(ctx, m.revision, doomed, nil); err != nil {
				return Moved{}, err
			}
			done += to - from
			m.progress("deleted", done, m.total)
		}
	}
	// Nothing older than this can be read any more: it is in two places.
	last := m.revision + 1
	for _, p := range m.places {
		err := p.Session.Apply(ctx, &backend.Batch{AfterID: p.lastID, LastRev: last, Floor: last + 1})
		if err != nil {
			return Moved{}, fmt.Errorf("end the move in backend %q: %w", p.Name, err)
		}
	}
	return Moved{Keys: m.total, Revision: last, SHA256: sum}, nil
}

// movePiece is how many keys are read and stored at a time.
const movePiece = 200

// copy stores a piece of a source's keys in their targets, leaving out what is
// there from a run before.
func (m *mover) copy(ctx context.Context, source *movedPlace, from, to int) error {
	values, err := source.values(ctx, source.misplaced[from:to])
	if err != nil {
		return err
	}
	rows := map[int][]backend.Version{}
	leases := map[int]map[int64]backend.Lease{}
	for i, v := range source.misplaced[from:to] {
		index := source.targets[from+i]
		target := m.places[index]
		if there := target.newest[string(v.Key)]; there != nil && !there.Deleted {
			if !sameNumbers(there, v) {
				return fmt.Errorf("the key %q is in both %q and %q with different revisions; delete one of them first", v.Key, source.Name, target.Name)
			}
			continue
		}
		row := *v
		row.Prev, row.Sub, row.Value = 0, 0, values[i]
		rows[index] = append(rows[index], row)
		if lease, known := m.leases[v.Lease]; known && !target.leases[v.Lease] {
			if leases[index] == nil {
				leases[index] = map[int64]backend.Lease{}
			}
			leases[index][v.Lease] = lease
		}
	}
	for index, versions := range rows {
		target := m.places[index]
		if err := target.forget(ctx, versions); err != nil {
			return err
		}
		if err := target.append(ctx, m.revision, versions, slices.Collect(maps.Values(leases[index]))); err != nil {
			return err
		}
		for id := range leases[index] {
			target.leases[id] = true
		}
	}
	return nil
}

func sameNumbers(a, b *backend.Version) bool {
	return a.Rev == b.Rev && a.Create == b.Create && a.Version == b.Version && a.Lease == b.Lease && bytes.Equal(a.Key, b.Key)
}
