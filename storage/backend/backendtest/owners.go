package backendtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// renewing renews a session as the engine does, until stop is called.
func (s *store) renewing(session backend.Session) (stop func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(session.Term() / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if err := session.Renew(ctx); err != nil && ctx.Err() == nil {
					s.Errorf("renew: %v", err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

func livingOwner(s *store) {
	owner := s.session()
	stop := s.renewing(owner)
	defer stop()
	other := s.database()
	_, err := other.Acquire(s.ctx)
	if !errors.Is(err, backend.ErrOwned) {
		s.Fatalf("a second owner: %v", err)
	}
	s.apply(owner, batchOf(put(1, "a", "")))
}

func silentOwner(s *store) {
	first := s.session()
	s.apply(first, batchOf(put(1, "a", "")))
	other := s.database()
	begin := time.Now()
	second := s.acquire(other)
	if waited := time.Since(begin); waited < first.Term() {
		s.Errorf("the term of %v was cut short to %v", first.Term(), waited)
	}
	equal(s, "last ID", second.State().LastID, 1)
	s.over("a version", first.Apply(s.ctx, batchOf(put(2, "first", ""))))
	if err := first.Renew(s.ctx); !errors.Is(err, backend.ErrFenced) {
		s.Errorf("the former owner renews: %v", err)
	}
	s.apply(second, batchOf(put(2, "second", "")))
	equal(s, "keys", keysOf(s.newest(second, nil, nil, 2)), []string{"a", "second"})
}

func leavingOwner(s *store) {
	first := s.database()
	session := s.acquire(first)
	s.must(session.Close())
	s.must(first.Close())
	other := s.database()
	begin := time.Now()
	second := s.acquire(other)
	if waited := time.Since(begin); waited >= second.Term() {
		s.Errorf("waited %v for an owner that had left", waited)
	}
}

func contenders(s *store) {
	databases := []backend.Database{s.database(), s.database(), s.database()}
	owners := make([]backend.Session, len(databases))
	var all sync.WaitGroup
	var stops []func()
	var mu sync.Mutex
	for i, d := range databases {
		all.Go(func() {
			session, err := d.Acquire(s.ctx)
			if err != nil {
				if !errors.Is(err, backend.ErrOwned) {
					s.Errorf("acquire: %v", err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			owners[i] = session
			stops = append(stops, s.renewing(session))
		})
	}
	all.Wait()
	count := 0
	for _, owner := range owners {
		if owner != nil {
			count++
			s.open = append(s.open, owner)
			s.apply(owner, batchOf(put(1, "a", "")))
		}
	}
	for _, stop := range stops {
		stop()
	}
	equal(s, "number of owners", count, 1)
}
