package mvcc

// Misplaced are live keys of one backend that the router would look for in
// another.
type Misplaced struct {
	From, To int // positions in Options.Backends
	Keys     int
	Example  string // one of them
}

// Misplaced finds all keys that are not where the router looks for them, as
// they are in a store whose routes have changed. Backends that have not joined
// yet are left out; their positions are returned, too.
func (s *Store) Misplaced() (found []Misplaced, absent []int) {
	for from, shard := range s.shards {
		s.sequencer.mu.Lock()
		lane := s.sequencer.lanes[from]
		tree, missing := lane.tree, lane.absent != nil
		s.sequencer.mu.Unlock()
		if missing {
			absent = append(absent, from)
			continue
		}
		byTarget := make([]Misplaced, len(s.shards))
		tree.ascend(span{open: true}, func(i *item) bool {
			if to := shard.laneOf(i.key); to != from {
				m := &byTarget[to]
				m.From, m.To, m.Example = from, to, i.key
				m.Keys++
			}
			return true
		})
		for _, m := range byTarget {
			if m.Keys > 0 {
				found = append(found, m)
			}
		}
	}
	return found, absent
}

// Revision is the newest acknowledged revision.
func (s *Store) Revision() int64 { return s.sequencer.now() }
