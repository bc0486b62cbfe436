package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed says that the session was closed, before or during the call.
var ErrClosed = errors.New("the database session is closed")

// Pool is a bounded set of connections of type C. They are opened when they
// are needed and used by one caller at a time.
type Pool[C any] struct {
	open   func(context.Context) (C, error)
	close  func(C)
	limits PoolLimits

	slots chan struct{} // one for each connection in use
	ended context.Context
	end   context.CancelFunc

	mu     sync.Mutex
	idle   []pooled[C] // the one that was used last at the end
	closed bool
	inUse  sync.WaitGroup // added to under mu, while not closed
}

// PoolLimits bound a pool. Zero is no bound, but for Open.
type PoolLimits struct {
	// Open is the most connections at once, Idle the most that are kept while
	// nobody uses them.
	Open, Idle int
	// Life is how long a connection is used in all, IdleLife how long it is
	// kept unused.
	Life, IdleLife time.Duration
}

// pooled is a connection with its times.
type pooled[C any] struct {
	conn         C
	opened, used time.Time
}

// NewPool makes a pool of at most size connections. Close ends it.
func NewPool[C any](size int, open func(context.Context) (C, error), close func(C)) *Pool[C] {
	return NewLimitedPool(PoolLimits{Open: size}, open, close)
}

// NewLimitedPool is NewPool with more bounds.
func NewLimitedPool[C any](limits PoolLimits, open func(context.Context) (C, error), close func(C)) *Pool[C] {
	p := &Pool[C]{open: open, close: close, limits: limits, slots: make(chan struct{}, limits.Open)}
	p.ended, p.end = context.WithCancel(context.Background())
	return p
}

// Do runs fn on a connection, with a context that ends with ctx and with the
// pool. fn reports whether the connection can be used again; if it cannot, the
// idle ones are closed too, since what broke one (a restarted server) has
// broken them as well. fresh tells fn whether the connection was opened for it.
func (p *Pool[C]) Do(ctx context.Context, fn func(ctx context.Context, c C, fresh bool) (usable bool, err error)) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ended.Done():
		return ErrClosed
	}
	c, found, err := p.take()
	if err != nil {
		return err
	}
	defer p.inUse.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ended, func() { cancel(ErrClosed) })()
	if !found {
		if c.conn, err = p.open(ctx); err != nil {
			return p.explain(err)
		}
		c.opened = time.Now()
	}
	usable, err := fn(ctx, c.conn, !found)
	p.give(c, usable)
	return p.explain(err)
}

// explain names the closed pool as the cause of what it interrupted.
func (p *Pool[C]) explain(err error) error {
	if err != nil && p.ended.Err() != nil {
		return fmt.Errorf("%w (%w)", ErrClosed, err)
	}
	return err
}

func (p *Pool[C]) take() (c pooled[C], found bool, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return c, false, ErrClosed
	}
	p.inUse.Add(1)
	unwanted := p.expired()
	if last := len(p.idle) - 1; last >= 0 {
		c, found = p.idle[last], true
		p.idle = p.idle[:last]
	}
	p.mu.Unlock()
	p.closeAll(unwanted)
	return c, found, nil
}

// expired takes the idle connections whose time is over out of the pool; the
// lock is held.
func (p *Pool[C]) expired() (over []pooled[C]) {
	if p.limits.Life == 0 && p.limits.IdleLife == 0 {
		return nil
	}
	now := time.Now()
	kept := p.idle[:0]
	for _, c := range p.idle {
		if p.over(p.limits.Life, now.Sub(c.opened)) || p.over(p.limits.IdleLife, now.Sub(c.used)) {
			over = append(over, c)
		} else {
			kept = append(kept, c)
		}
	}
	p.idle = kept
	return over
}

func (p *Pool[C]) over(limit, passed time.Duration) bool { return limit > 0 && passed >= limit }

func (p *Pool[C]) give(c pooled[C], usable bool) {
	c.used = time.Now()
	p.mu.Lock()
	var unwanted []pooled[C]
	switch {
	case !usable:
		unwanted = append(p.idle, c)
		p.idle = nil
	case p.closed, p.over(p.limits.Life, c.used.Sub(c.opened)), p.limits.Idle > 0 && len(p.idle) >= p.limits.Idle:
		unwanted = []pooled[C]{c}
	default:
		p.idle = append(p.idle, c)
		if p.limits.IdleLife > 0 {
			// It ends by itself, and finds nothing in a pool that is closed.
			time.AfterFunc(p.limits.IdleLife, p.sweep)
		}
	}
	p.mu.Unlock()
	p.closeAll(unwanted)
}

// sweep closes the idle connections whose time is over.
func (p *Pool[C]) sweep() {
	p.mu.Lock()
	over := p.expired()
	p.mu.Unlock()
	p.closeAll(over)
}

func (p *Pool[C]) closeAll(connections []pooled[C]) {
	for _, c := range connections {
		p.close(c.conn)
	}
}

// Close interrupts what runs, waits for it and closes every connection.
func (p *Pool[C]) Close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	p.end()
	p.closeAll(idle)
	p.inUse.Wait()
}
