package mvcc_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// memoryDB is a database in memory that can be slow, refuse, lie about its
// commits and be written to by strangers.
type memoryDB struct {
	mu       sync.Mutex
	state    backend.State
	versions []backend.Version
	leases   map[int64]backend.Lease
	acquired int

	// before is called for every Apply, without the lock; a returned error
	// is Apply's, and nothing is stored.
	before func(*backend.Batch) error
	// after is called when a batch is stored; a returned error is Apply's
	// all the same.
	after func(*backend.Batch) error
	// acquire may refuse an Acquire.
	acquire func() error
	term    time.Duration
}

func newMemoryDB() *memoryDB {
	return &memoryDB{state: backend.State{LastRev: 1}, leases: map[int64]backend.Lease{}}
}

func (db *memoryDB) Kind() string { return "memory" }
func (db *memoryDB) Close() error { return nil }

// set changes the faults.
func (db *memoryDB) set(change func()) {
	db.mu.Lock()
	defer db.mu.Unlock()
	change()
}

func (db *memoryDB) Acquire(context.Context) (backend.Session, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.acquired++
	if db.acquire != nil {
		if err := db.acquire(); err != nil {
			return nil, err
		}
	}
	db.state.Epoch++
	return &memorySession{db: db, state: db.state}, nil
}

// takeovers is how often the database was acquired.
func (db *memoryDB) takeovers() int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.acquired
}

// store commits a batch if it belongs to the epoch and follows the last one,
// as a database would, whenever it arrives.
func (db *memoryDB) store(epoch int64, batch *backend.Batch) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.state.Epoch != epoch || db.state.LastID != batch.AfterID {
		return backend.ErrFenced
	}
	db.state.LastRev, db.state.LastID = batch.LastRev, batch.LastID()
	if batch.Floor != 0 {
		db.state.Floor = batch.Floor
	}
	if batch.Swept != 0 {
		db.state.Swept = batch.Swept
	}
	for _, v := range batch.Versions {
		v.Key, v.Value = bytes.Clone(v.Key), bytes.Clone(v.Value)
		db.versions = append(db.versions, v)
	}
	db.versions = slices.DeleteFunc(db.versions, func(v backend.Version) bool { return slices.Contains(batch.Sweep, v.ID) })
	for _, lease := range batch.PutLeases {
		db.leases[lease.ID] = lease
	}
	for _, id := range batch.DeleteLeases {
		delete(db.leases, id)
	}
	return nil
}

type memorySession struct {
	db    *memoryDB
	state backend.State
}

func (s *memorySession) State() backend.State   { return s.state }
func (s *memorySession) Limits() backend.Limits { return backend.Limits{KeyBytes: 2048} }
func (s *memorySession) Term() time.Duration    { return s.db.term }
func (s *memorySession) Close() error           { return nil }

func (s *memorySession) Renew(context.Context) error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.db.state.Epoch != s.state.Epoch {
		return backend.ErrFenced
	}
	return nil
}

func (s *memorySession) Apply(_ context.Context, batch *backend.Batch) error {
	s.db.mu.Lock()
	before, after := s.db.before, s.db.after
	s.db.mu.Unlock()
	if before != nil {
		if err := before(batch); err != nil {
			return err
		}
	}
	if err := s.db.store(s.state.Epoch, batch); err != nil {
		return err
	}
	if after != nil {
		return after(batch)
	}
	return nil
}

// snapshot is the rows up to an ID.
func (s *memorySession) snapshot(upTo int64) []backend.Version {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	var rows []backend.Version
	for _, v := range s.db.versions {
		if v.ID <= upTo {
			rows = append(rows, v)
		}
	}
	return rows
}

func stop(err error) error {
	if errors.Is(err, backend.ErrStop) {
		return nil
	}
	return err
}

func (s *memorySession) Newest(_ context.Context, from, end []byte, upTo int64, fn func(*backend.Version) error) error {
	newest := map[string]backend.Version{}
	for _, v := range s.snapshot(upTo) {
		if bytes.Compare(v.Key, from) >= 0 && (end == nil || bytes.Compare(v.Key, end) < 0) {
			newest[string(v.Key)] = v
		}
	}
	keys := make([]string, 0, len(newest))
	for key := range newest {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		v := newest[key]
		v.Value = nil
		if err := fn(&v); err != nil {
			return stop(err)
		}
	}
	return nil
}

func (s *memorySession) Scan(_ context.Context, after, upTo int64, values bool, fn func(*backend.Version) error) error {
	for _, v := range s.snapshot(upTo) {
		if v.ID <= after {
			continue
		}
		if !values {
			v.Value = nil
		}
		if err := fn(&v); err != nil {
			return stop(err)
		}
	}
	return nil
}

func (s *memorySession) Next(_ context.Context, id int64) (int64, int64, bool, error) {
	for _, v := range s.snapshot(1 << 62) {
		if v.ID >= id {
			return v.ID, v.Rev, true, nil
		}
	}
	return 0, 0, false, nil
}

func (s *memorySession) Values(_ context.Context, ids []int64, fn func(int, []byte)) error {
	rows := map[int64]backend.Version{}
	for _, v := range s.snapshot(1 << 62) {
		rows[v.ID] = v
	}
	for position, id := range ids {
		v, ok := rows[id]
		if !ok {
			return &backend.Missing{ID: id}
		}
		fn(position, v.Value)
	}
	return nil
}

func (s *memorySession) Leases(_ context.Context, fn func(backend.Lease) error) error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for _, lease := range s.db.leases {
		if err := fn(lease); err != nil {
			return stop(err)
		}
	}
	return nil
}

func (s *memorySession) Size(context.Context) (backend.Size, error) { return backend.Size{}, nil }
func (s *memorySession) Maintain(context.Context) (bool, error)     { return false, nil }
func (s *memorySession) Defragment(context.Context) error           { return nil }
