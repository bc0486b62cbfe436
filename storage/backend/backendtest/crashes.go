package backendtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

const (
	crashes       = 5
	betweenDeaths = 40 // batches, about
)

// RunCrashes kills the server at moments that the writer does not choose, and
// checks after each that what was acknowledged is stored, that what was not is
// either stored whole or not at all, and that the same database value goes on.
func RunCrashes(t *testing.T, server *dbserver.Server, open func(context.Context) (backend.Database, error)) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*timeout)
	defer cancel()
	s := &store{T: t, ctx: ctx, opener: open}
	defer s.closeAll()
	d := s.database()
	session := s.acquire(d)
	last := int64(0) // stored for certain
	for crash := range crashes {
		reached, dead := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(dead)
			<-reached
			server.Kill()
		}()
		told := false
		first, sent := last, int64(0)
		for err := error(nil); err == nil; {
			batch := batchOf(put(last+1, fmt.Sprintf("key %d", last+1), "a"), put(last+2, fmt.Sprintf("key %d", last+2), "b"))
			if sent = last + 2; sent >= first+betweenDeaths+int64(crash) && !told {
				told = true
				close(reached)
			}
			if err = session.Apply(ctx, batch); err == nil {
				last = sent
				continue
			}
			var rejected *backend.Rejected
			if errors.As(err, &rejected) || errors.Is(err, backend.ErrFenced) {
				t.Fatalf("a batch on a dying server: %v", err)
			}
		}
		<-dead
		s.must(session.Close())
		server.Start()
		var err error
		if !dbserver.Eventually(timeout, func() bool { session, err = d.Acquire(ctx); return err == nil }) {
			t.Fatalf("acquire after the server's crash: %v", err)
		}
		s.open = append(s.open, session)
		found := session.State().LastID
		if found != last && found != sent {
			t.Fatalf("%d versions were acknowledged and %d sent; %d are stored", last, sent, found)
		}
		last = found
		equal(s, "number of versions", len(s.scan(session, 0, last, true)), int(last))
	}
}

// ReadsSurvive checks that a session's reads go on by themselves after the
// server was restarted.
func ReadsSurvive(t *testing.T, server *dbserver.Server, open func(context.Context) (backend.Database, error)) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	s := &store{T: t, ctx: ctx, opener: open}
	defer s.closeAll()
	session := s.session()
	s.apply(session, batchOf(put(1, "a", "1"), put(2, "b", "2")))
	equal(s, "keys", keysOf(s.newest(session, nil, nil, 2)), []string{"a", "b"})
	server.Kill()
	begin := time.Now()
	if err := session.Values(ctx, []int64{1}, func(int, []byte) {}); err == nil {
		t.Error("a dead server answers")
	} else if waited := time.Since(begin); waited > 10*time.Second {
		t.Errorf("it took %v to notice that the server is dead", waited)
	}
	server.Start()
	equal(s, "keys", keysOf(s.newest(session, nil, nil, 2)), []string{"a", "b"})
	equal(s, "values", s.values(session, 2, 1), [][]byte{[]byte("2"), []byte("1")})
}
