package sqlstore

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// opener counts connections, which are numbers.
type opener struct {
	mu     sync.Mutex
	opened int
	closed []int
}

func (o *opener) open(context.Context) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened++
	return o.opened, nil
}

func (o *opener) close(c int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = append(o.closed, c)
}

func (o *opener) closedNow() []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.closed)
}

// use takes n connections at the same time and returns their numbers, sorted.
func use(t *testing.T, p *Pool[int], n int) []int {
	t.Helper()
	var all sync.WaitGroup
	taken, release := make(chan int, n), make(chan struct{})
	for range n {
		all.Go(func() {
			err := p.Do(t.Context(), func(_ context.Context, c int, _ bool) (bool, error) {
				taken <- c
				<-release
				return true, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	var numbers []int
	for range n {
		numbers = append(numbers, <-taken)
	}
	close(release)
	all.Wait()
	slices.Sort(numbers)
	return numbers
}

func TestAPoolKeepsNoMoreIdleConnectionsThanItMay(t *testing.T) {
	var o opener
	p := NewLimitedPool(PoolLimits{Open: 5, Idle: 2}, o.open, o.close)
	defer p.Close()
	use(t, p, 5)
	if closed := o.closedNow(); len(closed) != 3 {
		t.Errorf("of 5 connections %v were closed, want 3", closed)
	}
	use(t, p, 2)
	if o.opened != 5 {
		t.Errorf("%d were opened: the idle ones were not used", o.opened)
	}
}

func TestAConnectionIsNotUsedBeyondItsLife(t *testing.T) {
	var o opener
	p := NewLimitedPool(PoolLimits{Open: 1, Life: time.Millisecond}, o.open, o.close)
	defer p.Close()
	deadline := time.Now().Add(10 * time.Second)
	for use(t, p, 1)[0] == 1 {
		if time.Now().After(deadline) {
			t.Fatal("the first connection is used for ever")
		}
	}
	if closed := o.closedNow(); !slices.Contains(closed, 1) {
		t.Errorf("closed: %v", closed)
	}
}

func TestAnIdleConnectionIsClosedAfterAWhile(t *testing.T) {
	var o opener
	p := NewLimitedPool(PoolLimits{Open: 3, IdleLife: 5 * time.Millisecond}, o.open, o.close)
	defer p.Close()
	use(t, p, 3)
	deadline := time.Now().Add(10 * time.Second)
	for len(o.closedNow()) < 3 {
		if time.Now().After(deadline) {
			t.Fatalf("closed: %v", o.closedNow())
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAPoolWithoutBoundsKeepsWhatItHas(t *testing.T) {
	var o opener
	p := NewPool(3, o.open, o.close)
	first := use(t, p, 3)
	if second := use(t, p, 3); !slices.Equal(first, second) || len(o.closedNow()) != 0 {
		t.Errorf("%v, then %v; closed %v", first, second, o.closedNow())
	}
	p.Close()
	if len(o.closedNow()) != 3 {
		t.Errorf("closed: %v", o.closedNow())
	}
}
