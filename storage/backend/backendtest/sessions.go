package backendtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

func olderSession(s *store) {
	d := s.database()
	older := s.acquire(d)
	s.apply(older, batchOf(put(1, "a", "")))
	newer := s.acquire(d)
	if newer.State().Epoch <= older.State().Epoch {
		s.Errorf("the epoch went from %d to %d", older.State().Epoch, newer.State().Epoch)
	}
	for name, batch := range map[string]*backend.Batch{
		"a version": batchOf(put(2, "older", "")),
		"a lease":   {AfterID: 1, LastRev: 2, PutLeases: []backend.Lease{{ID: 1}}},
	} {
		s.over(name, older.Apply(s.ctx, batch))
	}
	if older.Term() > 0 {
		if err := older.Renew(s.ctx); !errors.Is(err, backend.ErrFenced) {
			s.Errorf("an older session renews: %v", err)
		}
	}
	s.must(newer.Renew(s.ctx))
	s.apply(newer, batchOf(put(2, "newer", "")))
	equal(s, "keys", keysOf(s.newest(newer, nil, nil, 2)), []string{"a", "newer"})
	equal(s, "number of leases", len(s.leaseMap(newer)), 0)
}

// over checks an error of Apply that ends a session: that it was fenced, or,
// where its connection was ended first, that nobody knows.
func (s *store) over(what string, err error) {
	s.Helper()
	var rejected *backend.Rejected
	if err == nil || errors.As(err, &rejected) {
		s.Errorf("a session that is over stores %s: %v", what, err)
	}
}

func openedAgain(s *store) {
	d := s.database()
	session := s.acquire(d)
	s.apply(session, batchOf(put(1, "a", "1"), put(2, "b", "2")))
	s.apply(session, &backend.Batch{AfterID: 2, LastRev: 3, Floor: 2, Swept: 1, PutLeases: []backend.Lease{{ID: 3, TTL: 4, Deadline: 5}}})
	epoch := session.State().Epoch
	s.must(session.Close())
	s.must(d.Close())
	s.open = nil

	session = s.session()
	state := session.State()
	if state.Epoch <= epoch {
		s.Errorf("the epoch went from %d to %d", epoch, state.Epoch)
	}
	state.Epoch = 0
	equal(s, "state", state, backend.State{LastRev: 3, LastID: 2, Floor: 2, Swept: 1})
	equal(s, "values", s.values(session, 1, 2), [][]byte{[]byte("1"), []byte("2")})
	equal(s, "leases", s.leaseMap(session), map[int64]backend.Lease{3: {ID: 3, TTL: 4, Deadline: 5}})
}

func readsBesideWrites(s *store) {
	session := s.session()
	const batches, readers = 60, 4
	acknowledged := make([]chan int64, readers)
	var reading sync.WaitGroup
	for i := range acknowledged {
		acknowledged[i] = make(chan int64, batches)
		reading.Go(func() {
			for id := range acknowledged[i] {
				count := 0
				err := session.Newest(s.ctx, []byte("key"), nil, id, func(*backend.Version) error { count++; return nil })
				if err == nil && int64(count) != id {
					err = fmt.Errorf("%d of %d keys are seen", count, id)
				}
				if err == nil {
					err = session.Values(s.ctx, []int64{id}, func(int, []byte) {})
				}
				if err != nil {
					s.Errorf("a read after version %d: %v", id, err)
				}
			}
		})
	}
	for id := int64(1); id <= batches; id++ {
		s.apply(session, batchOf(put(id, fmt.Sprintf("key %d", id), "value")))
		for _, c := range acknowledged {
			c <- id
		}
	}
	for _, c := range acknowledged {
		close(c)
	}
	reading.Wait()
}

func canceledRead(s *store) {
	session := s.session()
	batch := &backend.Batch{}
	for id := int64(1); id <= 2000; id++ {
		v := put(id, fmt.Sprintf("key %d", id), "value")
		batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
	}
	s.apply(session, batch)
	ctx, cancel := context.WithCancel(s.ctx)
	err := session.Scan(ctx, 0, 2000, true, func(*backend.Version) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		s.Errorf("a scan that is canceled while it runs: %v", err)
	}
	s.apply(session, batchOf(put(2001, "later", "")))
	equal(s, "number of keys", len(s.newest(session, nil, nil, 2001)), 2001)
}

func housekeeping(s *store) {
	session := s.session()
	before, err := session.Size(s.ctx)
	s.must(err)
	var removed []int64
	batch := &backend.Batch{}
	for id := int64(1); id <= 4000; id++ {
		v := put(id, fmt.Sprintf("key %d", id), strings.Repeat("v", 2000))
		batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
		if id < 4000 {
			removed = append(removed, id)
		}
	}
	s.apply(session, batch)
	var full backend.Size
	dbserver.Eventually(timeout/2, func() bool { // some count now and then only
		full, err = session.Size(s.ctx)
		return err != nil || full.Allocated >= before.Allocated+4000*2000
	})
	s.must(err)
	if full.Allocated < before.Allocated+4000*2000 || full.InUse <= 0 || full.InUse > full.Allocated {
		s.Errorf("8 MB brought the size from %+v to %+v", before, full)
	}
	s.apply(session, &backend.Batch{AfterID: 4000, LastRev: 4001, Sweep: removed})
	for calls, more := 0, true; more; calls++ {
		if more, err = session.Maintain(s.ctx); err != nil || calls > 10_000 {
			s.Fatalf("housekeeping call %d: %v", calls, err)
		}
	}
	s.must(session.Defragment(s.ctx))
	after, err := session.Size(s.ctx)
	s.must(err)
	if after.Allocated > full.Allocated/2 {
		s.Errorf("after all but one version went, the size is %+v; it was %+v", after, full)
	}
	s.apply(session, batchOf(put(4001, "later", "")))
	equal(s, "keys", keysOf(s.newest(session, nil, nil, 4001)), []string{"key 4000", "later"})
}

func closing(s *store) {
	d := s.database()
	session := s.acquire(d)
	batch := &backend.Batch{}
	for id := int64(1); id <= 2000; id++ {
		v := put(id, fmt.Sprintf("key %d", id), strings.Repeat("v", 1000))
		batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
	}
	s.apply(session, batch)
	closed := make(chan error, 1)
	begun := false
	err := session.Scan(s.ctx, 0, 2000, true, func(*backend.Version) error {
		if !begun {
			begun = true
			go func() { closed <- session.Close() }()
		}
		return nil
	})
	s.must(<-closed)
	if err != nil {
		s.Logf("the scan that was running: %v", err)
	}
	if err := session.Close(); err != nil {
		s.Errorf("closed again: %v", err)
	}
	if err := session.Newest(s.ctx, nil, nil, 1, func(*backend.Version) error { return nil }); err == nil {
		s.Error("a closed session answers")
	}
	equal(s, "number of keys", len(s.newest(s.acquire(d), nil, nil, 2000)), 2000)
}
