package view

import (
	"github.com/google/btree"
)

// treeDegree is the branching factor: nodes of up to 63 rows are what the
// first write after a snapshot copies, three or four of them.
const treeDegree = 32

// snapshot is the state at one number. It never changes, so it is read without
// a lock, by as many as like.
type snapshot struct {
	tree   *btree.BTreeG[*Row]
	number uint64
}

func newTree() *btree.BTreeG[*Row] {
	return btree.NewG(treeDegree, lessRow)
}

// walk calls visit for every selected row after the key start (nil: from the
// beginning), in order, until visit returns false. It touches only rows in the
// namespace that is asked for.
func (s snapshot) walk(selected selection, start *Key, visit func(*Row) bool) {
	if selected.name != "" {
		s.visitOne(selected, start, visit)
		return
	}
	from := Key{Namespace: selected.namespace}
	if start != nil {
		from = *start
	}
	s.tree.AscendGreaterOrEqual(&Row{key: from}, func(row *Row) bool {
		if selected.namespace != "" && row.key.Namespace != selected.namespace {
			return false
		}
		if start != nil && row.key == *start {
			return true
		}
		return !selected.matches(row.Item) || visit(row)
	})
}

func (s snapshot) visitOne(selected selection, start *Key, visit func(*Row) bool) {
	key := Key{selected.namespace, selected.name}
	if start != nil && !start.less(key) {
		return
	}
	if row, found := s.tree.Get(&Row{key: key}); found && selected.matches(row.Item) {
		visit(row)
	}
}

// count walks the rest of the selection after start.
func (s snapshot) count(selected selection, start *Key) int64 {
	var count int64
	s.walk(selected, start, func(*Row) bool { count++; return true })
	return count
}
