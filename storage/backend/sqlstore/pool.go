package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrClosed says that the session was closed, before or during the call.
var ErrClosed = errors.New("the database session is closed")

// Pool is a bounded set of connections of type C. They are opened when they
// are needed and used by one caller at a time.
type Pool[C any] struct {
	open  func(context.Context) (C, error)
	close func(C)

	slots chan struct{} // one for each connection in use
	ended context.Context
	end   context.CancelFunc

	mu     sync.Mutex
	idle   []C
	closed bool
	inUse  sync.WaitGroup // added to under mu, while not closed
}

// NewPool makes a pool of at most size connections. Close ends it.
func NewPool[C any](size int, open func(context.Context) (C, error), close func(C)) *Pool[C] {
	p := &Pool[C]{open: open, close: close, slots: make(chan struct{}, size)}
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
		if c, err = p.open(ctx); err != nil {
			return p.explain(err)
		}
	}
	usable, err := fn(ctx, c, !found)
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

func (p *Pool[C]) take() (c C, found bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return c, false, ErrClosed
	}
	p.inUse.Add(1)
	if last := len(p.idle) - 1; last >= 0 {
		c = p.idle[last]
		p.idle = p.idle[:last]
		return c, true, nil
	}
	return c, false, nil
}

func (p *Pool[C]) give(c C, usable bool) {
	p.mu.Lock()
	var unwanted []C
	switch {
	case usable && !p.closed:
		p.idle = append(p.idle, c)
	case usable:
		unwanted = []C{c}
	default:
		unwanted = append(p.idle, c)
		p.idle = nil
	}
	p.mu.Unlock()
	for _, c := range unwanted {
		p.close(c)
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
	for _, c := range idle {
		p.close(c)
	}
	p.inUse.Wait()
}
