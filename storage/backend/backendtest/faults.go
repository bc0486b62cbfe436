package backendtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

// Networked is what a backend that talks to a server gives to RunFaults.
type Networked struct {
	// New makes an empty store behind a proxy.
	New func(t *testing.T) NetworkedStore
}

// NetworkedStore is one store behind a proxy.
type NetworkedStore struct {
	// Open opens the store through the proxy. commitTimeout is the backend's
	// own setting.
	Open  func(ctx context.Context, commitTimeout time.Duration) (backend.Database, error)
	Proxy *dbserver.Proxy
	// LastID reads meta's last_id beside the proxy.
	LastID func() int64
}

// marker is a key by which a batch is found on the wire.
const marker = "/marker/of/the/batch"

// RunFaults runs the tests of what happens to a batch when the network or the
// server fails.
func RunFaults(t *testing.T, networked Networked) {
	tests := []struct {
		name string
		run  func(*faulty)
	}{
		{"a batch whose request is lost is not stored", lostRequest},
		{"a batch whose answer is lost is stored", lostAnswer},
		{"a batch that arrives after its session was given up is refused", lateRequest},
		{"a half-dead session in a transaction does not keep the store", halfDead},
		{"a server that does not answer makes the outcome unknown in time", silentServer},
		{"a canceled context does not cancel a commit", canceledCommit},
		{"closing a session ends a batch that hangs", closedCommit},
		{"reads go on after all connections were cut", cutReads},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			n := networked.New(t)
			f := &faulty{NetworkedStore: n, commitTimeout: time.Minute}
			f.store = &store{T: t, ctx: ctx, opener: func(ctx context.Context) (backend.Database, error) { return n.Open(ctx, f.commitTimeout) }}
			defer f.closeAll()
			test.run(f)
		})
	}
}

type faulty struct {
	NetworkedStore
	*store
	commitTimeout time.Duration
}

// begin applies a marked batch in the background. The result is sent when
// Apply returns.
func (f *faulty) begin(ctx context.Context, session backend.Session) <-chan error {
	result := make(chan error, 1)
	go func() { result <- session.Apply(ctx, batchOf(put(2, marker, "value"))) }()
	return result
}

// unknown checks that an error of Apply leaves the outcome open.
func (f *faulty) unknown(err error) {
	f.Helper()
	var rejected *backend.Rejected
	if err == nil || errors.As(err, &rejected) || errors.Is(err, backend.ErrFenced) {
		f.Fatalf("the outcome should be unknown, not: %v", err)
	}
}

// stored checks what the store holds by a new session, and that it can be
// written to.
func (f *faulty) stored(session backend.Session, want ...string) {
	f.Helper()
	id := session.State().LastID
	equal(f.store, "keys", keysOf(f.scan(session, 0, id, false)), want)
	f.apply(session, batchOf(put(id+1, "later", "")))
	equal(f.store, "last ID", f.LastID(), id+1)
}

func lostRequest(f *faulty) {
	d := f.database()
	session := f.acquire(d)
	f.apply(session, batchOf(put(1, "a", "")))
	held := f.Proxy.Hold(marker)
	result := f.begin(f.ctx, session)
	held.Wait(f.T)
	held.CutClient()
	f.unknown(<-result)
	f.must(session.Close())
	f.stored(f.acquire(d), "a")
}

func lostAnswer(f *faulty) {
	d := f.database()
	session := f.acquire(d)
	f.apply(session, batchOf(put(1, "a", "")))
	held := f.Proxy.Hold(marker)
	result := f.begin(f.ctx, session)
	held.Wait(f.T)
	held.Deliver()
	if !dbserver.Eventually(timeout, func() bool { return f.LastID() == 2 }) {
		f.Fatal("the batch was never stored")
	}
	held.CutClient()
	f.unknown(<-result)
	f.must(session.Close())
	f.stored(f.acquire(d), "a", marker)
}

func lateRequest(f *faulty) {
	d := f.database()
	session := f.acquire(d)
	f.apply(session, batchOf(put(1, "a", "")))
	held := f.Proxy.Hold(marker)
	result := f.begin(f.ctx, session)
	held.Wait(f.T)
	held.CutClient()
	f.unknown(<-result)
	f.must(session.Close())
	next := f.acquire(d)
	equal(f.store, "last ID", next.State().LastID, 1)
	held.Deliver()
	answer := held.WaitAnswer(f.T)
	equal(f.store, "last ID after the server said "+fmt.Sprintf("%q", answer), f.LastID(), 1)
	f.stored(next, "a")
}

// halfDead leaves the server with the first part of a large batch, in an open
// transaction that holds the lock on the meta row.
func halfDead(f *faulty) {
	d := f.database()
	session := f.acquire(d)
	f.apply(session, batchOf(put(1, "a", "")))
	held := f.Proxy.Hold(marker)
	size := 1 << 20
	if limit := session.Limits().BatchBytes; limit > 0 {
		size = min(size, limit/14)
	}
	batch := &backend.Batch{AfterID: 1}
	for id := int64(2); id <= 14; id++ {
		v := put(id, fmt.Sprintf("key %d", id), strings.Repeat("v", size))
		if id == 14 {
			v.Key = []byte(marker)
		}
		batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
	}
	result := make(chan error, 1)
	go func() { result <- session.Apply(f.ctx, batch) }()
	held.Wait(f.T)
	held.CutClient()
	f.unknown(<-result)
	f.must(session.Close())
	f.stored(f.acquire(d), "a")
}

func silentServer(f *faulty) {
	f.commitTimeout = 500 * time.Millisecond
	d := f.database()
	session := f.acquire(d)
	f.apply(session, batchOf(put(1, "a", "")))
	held := f.Proxy.Hold(marker)
	begin := time.Now()
	f.unknown(<-f.begin(f.ctx, session))
	if waited := time.Since(begin); waited > 20*time.Second {
		f.Errorf("it took %v", waited)
	}
	held.Wait(f.T)
	held.CutClient()
	f.must(session.Close())
	f.stored(f.acquire(d), "a")
}

func canceledCommit(f *faulty) {
	session := f.session()
	f.apply(session, batchOf(put(1, "a", "")))
	held := f.Proxy.Hold(marker)
	ctx, cancel := context.WithCancel(f.ctx)
	result := f.begin(ctx, session)
	held.Wait(f.T)
	cancel()
	held.PassOn()
	f.must(<-result)
	equal(f.store, "last ID", f.LastID(), 2)
	var rejected *backend.Rejected
	if err := session.Apply(ctx, batchOf(put(3, "b", ""))); !errors.As(err, &rejected) {
		f.Errorf("a batch whose context is over: %v", err)
	}
	f.apply(session, batchOf(put(3, "b", "")))
}

func closedCommit(f *faulty) {
	d := f.database()
	session := f.acquire(d)
	f.apply(session, batchOf(put(1, "a", "")))
	held := f.Proxy.Hold(marker)
	result := f.begin(f.ctx, session)
	held.Wait(f.T)
	f.must(session.Close())
	f.unknown(<-result)
	held.CutClient()
	f.stored(f.acquire(d), "a")
}

func cutReads(f *faulty) {
	session := f.session()
	f.apply(session, batchOf(put(1, "a", "1"), put(2, "b", "2")))
	for range 3 {
		equal(f.store, "keys", keysOf(f.newest(session, nil, nil, 2)), []string{"a", "b"})
		f.Proxy.CutAll()
		equal(f.store, "values", f.values(session, 2, 1), [][]byte{[]byte("2"), []byte("1")})
	}
}
