package backendtest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

func (s *store) leaseMap(session backend.Session) map[int64]backend.Lease {
	s.Helper()
	all := map[int64]backend.Lease{}
	s.must(session.Leases(s.ctx, func(l backend.Lease) error {
		all[l.ID] = l
		return nil
	}))
	return all
}

func leases(s *store) {
	session := s.session()
	batch := &backend.Batch{LastRev: 1}
	want := map[int64]backend.Lease{}
	for i := range 1200 {
		lease := backend.Lease{ID: int64(i)*7_000_000_000 - 9, TTL: int64(i), Deadline: 1_800_000_000_000 + int64(i)}
		batch.PutLeases = append(batch.PutLeases, lease)
		want[lease.ID] = lease
	}
	s.apply(session, batch)
	equal(s, "leases", s.leaseMap(session), want)
	changed := backend.Lease{ID: -9, TTL: 60, Deadline: 5}
	want[-9] = changed
	delete(want, 7_000_000_000-9)
	s.apply(session, &backend.Batch{LastRev: 1, PutLeases: []backend.Lease{{ID: -9, TTL: 1, Deadline: 1}, changed}, DeleteLeases: []int64{7_000_000_000 - 9, 1}})
	equal(s, "leases", s.leaseMap(session), want)
}

func withoutVersions(s *store) {
	d := s.database()
	session := s.acquire(d)
	s.apply(session, batchOf(put(1, "a", "")))
	for _, test := range []struct {
		name         string
		batch        backend.Batch
		floor, swept int64
	}{
		{"nothing", backend.Batch{}, 0, 0},
		{"a floor", backend.Batch{Floor: 2}, 2, 0},
		{"swept", backend.Batch{Swept: 1}, 2, 1},
		{"a lease", backend.Batch{PutLeases: []backend.Lease{{ID: 4}}}, 2, 1},
		{"both", backend.Batch{Floor: 5, Swept: 3}, 5, 3},
	} {
		test.batch.AfterID, test.batch.LastRev = 1, 2
		s.apply(session, &test.batch)
		s.must(session.Close())
		session = s.acquire(d)
		state := session.State()
		state.Epoch = 0
		equal(s, "state after "+test.name, state, backend.State{LastRev: 2, LastID: 1, Floor: test.floor, Swept: test.swept})
	}
}

func sweep(s *store) {
	session := s.session()
	batch := &backend.Batch{}
	var removed []int64
	for id := int64(1); id <= 3000; id++ {
		v := put(id, fmt.Sprintf("key %d", id%100), "value")
		batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
		if id <= 2900 {
			removed = append(removed, id)
		}
	}
	s.apply(session, batch)
	s.apply(session, &backend.Batch{AfterID: 3000, LastRev: 3001, Floor: 3001, Sweep: append(removed, 7, 100_000), Swept: 3000})
	equal(s, "number of versions", len(s.scan(session, 0, 3000, true)), 100)
	equal(s, "number of keys", len(s.newest(session, []byte("k"), nil, 3000)), 100)
	s.apply(session, batchOf(put(3001, "key 1", "")))
}

func manyVersions(s *store) {
	session := s.session()
	const count = 10_000
	batch := &backend.Batch{LastRev: 2}
	for id := int64(1); id <= count; id++ {
		v := put(id, fmt.Sprintf("key %d", id), "")
		v.Rev, v.Sub = 2, id-1
		batch.Versions = append(batch.Versions, v)
	}
	s.apply(session, batch)
	for i, v := range s.scan(session, 0, count, true) {
		equalVersion(s, v, batch.Versions[i])
	}
	equal(s, "number of keys", len(s.newest(session, nil, nil, count)), count)
}

func largeBatch(s *store) {
	session := s.session()
	batch := &backend.Batch{}
	for id := int64(1); id <= 10; id++ {
		v := put(id, fmt.Sprintf("key %d", id), strings.Repeat(`'\"`+string(rune('a'+id)), 350_000))
		batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
	}
	s.apply(session, batch)
	for i, v := range s.scan(session, 0, 10, true) {
		equalVersion(s, v, batch.Versions[i])
	}
}

func tooLong(s *store) {
	session := s.session()
	limit := session.Limits().ValueBytes
	if limit == 0 || limit > 128<<20 {
		return // no request of etcd's can have a value that long
	}
	var rejected *backend.Rejected
	batch := batchOf(put(1, "a", "fits"), put(2, "b", ""))
	batch.Versions[1].Value = make([]byte, limit+1)
	if err := session.Apply(s.ctx, batch); !errors.As(err, &rejected) || rejected.Retry {
		s.Fatalf("a value above the limit: %v", err)
	}
	if len(s.scan(session, 0, 0, false)) != 0 {
		s.Error("part of a refused batch is stored")
	}
	s.apply(session, batchOf(put(1, "a", "fits")))
	equal(s, "value", string(s.values(session, 1)[0]), "fits")
}

func wrongLastID(s *store) {
	d := s.database()
	for name, batch := range map[string]*backend.Batch{
		"a gap":      {AfterID: 2, LastRev: 9, Versions: []backend.Version{put(3, "c", "")}},
		"a repeat":   {AfterID: 0, LastRev: 9, Versions: []backend.Version{put(1, "c", "")}},
		"a lease":    {AfterID: 0, LastRev: 9, PutLeases: []backend.Lease{{ID: 9}}},
		"just meta":  {AfterID: 5, LastRev: 9},
		"compaction": {AfterID: 0, LastRev: 9, Sweep: []int64{1}, Floor: 2},
	} {
		session := s.acquire(d)
		if session.State().LastID == 0 {
			s.apply(session, batchOf(put(1, "a", "")))
		}
		if err := session.Apply(s.ctx, batch); !errors.Is(err, backend.ErrFenced) {
			s.Errorf("%s: %v", name, err)
		}
		s.must(session.Close())
	}
	session := s.acquire(d)
	state := session.State()
	state.Epoch = 0
	equal(s, "state", state, backend.State{LastRev: 2, LastID: 1})
	equal(s, "keys", keysOf(s.newest(session, nil, nil, 1)), []string{"a"})
	equal(s, "number of leases", len(s.leaseMap(session)), 0)
}
