package mvcc

import (
	"math"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// pins are revisions whose rows must not be deleted yet, whatever the floor is.
type pins struct {
	mu   sync.Mutex
	held map[int]int64
	next int
}

// lowest is the lowest pinned revision.
func (p *pins) lowest() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	lowest := int64(math.MaxInt64)
	for _, rev := range p.held {
		lowest = min(lowest, rev)
	}
	return lowest
}

// Pin keeps the rows that make up the key space at a revision, which must not
// be compacted yet, until release is called. Compactions go on meanwhile for
// clients; only the deletion waits.
func (s *Store) Pin(revision int64) (release func(), err error) {
	p := &s.pins
	p.mu.Lock()
	defer p.mu.Unlock()
	if revision < s.sequencer.compacted() {
		return nil, rpctypes.ErrCompacted
	}
	if p.held == nil {
		p.held = map[int]int64{}
	}
	id := p.next
	p.next++
	p.held[id] = revision
	var once sync.Once
	return func() {
		once.Do(func() {
			p.mu.Lock()
			delete(p.held, id)
			p.mu.Unlock()
			for _, shard := range s.shards {
				shard.sweeper.aim(0)
			}
		})
	}, nil
}
