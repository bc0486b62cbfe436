package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// StrandedError refuses a start that would not find stored keys.
type StrandedError struct {
	Keys  int // how many
	Where []string
}

func (e *StrandedError) Error() string {
	return fmt.Sprintf("%d stored keys would be stranded: %s; bring them over with taskctl storage move and the same -f FILE or --storage SPEC, or start with the former routes",
		e.Keys, strings.Join(e.Where, ", "))
}

func (e *StrandedError) add(keys int, format string, args ...any) {
	e.Keys += keys
	e.Where = append(e.Where, fmt.Sprintf("%d ", keys)+fmt.Sprintf(format, args...))
}

// errMoving refuses a store of which a part is in two places.
var errMoving = errors.New("a move of keys has not ended; end it with taskctl storage move and the same -f FILE or --storage SPEC as before")

// checkPlaces compares the topology with what the data folder remembers, and
// refuses it with a *StrandedError where keys would not be found. It remembers
// the topology then.
func (s *Store) checkPlaces(ctx context.Context, config Config, topology Topology, past *remembered) error {
	now := placementOf(topology, s.Revision())
	if last := past.present(); last != nil && last.same(now) {
		return nil
	}
	stranded := &StrandedError{}
	misplaced, absent := s.Misplaced()
	for _, m := range misplaced {
		stranded.add(m.Keys, "in backend %q are routed to %q now (%s)", topology.Backends[m.From].Name, topology.Backends[m.To].Name, m.Example)
	}
	for _, b := range past.gone(now) {
		keys, err := countKeys(ctx, config, asBackend(b))
		if err != nil {
			return fmt.Errorf("the backend %q (%s) is gone from the storage, and whether it holds keys cannot be found out (%w); put it back without routes until its keys are moved", b.Name, b.Spec, err)
		}
		if keys > 0 {
			stranded.add(keys, "in backend %q (%s), which is gone from the storage", b.Name, b.Spec)
		}
	}
	if stranded.Keys > 0 {
		return stranded
	}
	for _, index := range absent {
		spec := now.Backends[index].Spec
		if last := past.present(); last != nil && slices.ContainsFunc(last.Backends, func(b placedBackend) bool { return b.Spec == spec }) {
			return fmt.Errorf("the routes have changed while the backend %q cannot be reached, so whether its keys are still found is not known; start it first, or start with the former routes", topology.Backends[index].Name)
		}
	}
	if len(absent) > 0 {
		return nil // the next complete start remembers
	}
	past.add(now)
	return past.save(config.DataDir)
}

func asBackend(b placedBackend) Backend { return Backend{Name: b.Name, Spec: b.Spec} }

// countKeys counts the live keys of a database that is opened for it.
func countKeys(ctx context.Context, config Config, b Backend) (keys int, err error) {
	database, err := openBackend(ctx, config, b, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	session, err := database.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	err = session.Newest(ctx, nil, nil, session.State().LastID, func(v *backend.Version) error {
		if !v.Deleted {
			keys++
		}
		return nil
	})
	return keys, err
}
