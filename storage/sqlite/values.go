package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// valuesAtOnce are read by one statement, in one pass over the file in
	// the order of their IDs.
	valuesAtOnce = 32
	// valuesAlone is up to how many it is cheaper to read one by one.
	valuesAlone = 3
)

// wantedValue is an ID with its position in the caller's list.
type wantedValue struct {
	id       int64
	position int
}

func (s *session) Values(ctx context.Context, ids []int64, fn func(position int, value []byte)) error {
	if len(ids) == 0 {
		return nil
	}
	wanted := make([]wantedValue, len(ids))
	for position, id := range ids {
		wanted[position] = wantedValue{id, position}
	}
	slices.SortFunc(wanted, func(a, b wantedValue) int { return cmp.Compare(a.id, b.id) })
	return s.read(ctx, func(r *reader) error {
		for len(wanted) > 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			n := min(len(wanted), valuesAtOnce)
			statement := r.values
			if n <= valuesAlone {
				n, statement = 1, r.value
			}
			if err := readValues(statement, wanted[:n], fn); err != nil {
				return err
			}
			wanted = wanted[n:]
		}
		return nil
	})
}

// readValues reads the wanted rows, which are in order of their IDs.
func readValues(statement *statement, wanted []wantedValue, fn func(position int, value []byte)) error {
	for i := range statement.args {
		statement.args[i].Value = wanted[min(i, len(wanted)-1)].id
	}
	next := 0
	err := statement.each(func(row []driver.Value) (bool, error) {
		id, _ := row[0].(int64)
		value, _ := row[1].([]byte)
		for ; next < len(wanted) && wanted[next].id <= id; next++ {
			if wanted[next].id < id {
				return false, &backend.Missing{ID: wanted[next].id}
			}
			fn(wanted[next].position, value)
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	if next < len(wanted) {
		return &backend.Missing{ID: wanted[next].id}
	}
	return nil
}
