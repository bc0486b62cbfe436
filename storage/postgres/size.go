package postgres

import (
	"context"
	"fmt"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Size is what the tables with their indexes occupy. What of it is in use is
// estimated from the statistics that autovacuum works by.
func (s *session) Size(ctx context.Context) (size backend.Size, err error) {
	versions := quoteLiteral(quoteIdentifier(s.db.schema) + ".versions")
	query := &statement{sql: fmt.Sprintf(`SELECT
		(SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = %s::regclass)),
		coalesce((SELECT pg_total_relation_size(relid) * n_dead_tup / greatest(n_live_tup + n_dead_tup, 1) FROM pg_stat_user_tables WHERE relid = %s::regclass), 0)::bigint`,
		versions, versions)}
	var unused int64
	err = s.read(ctx, 0, func() step {
		return step{statement: query, row: func(columns [][]byte) error { return decodeInts(columns, &size.Allocated, &unused) }}
	})
	if err != nil {
		return backend.Size{}, fmt.Errorf("measure schema %q: %w", s.db.schema, err)
	}
	size.InUse = size.Allocated - unused
	return size, nil
}

// Maintain has nothing to do: autovacuum gives the space of deleted rows back
// to the table.
func (s *session) Maintain(context.Context) (more bool, err error) { return false, nil }

// Defragment rewrites the tables without unused space. It holds up readers
// too.
func (s *session) Defragment(ctx context.Context) error {
	for _, table := range []string{"versions", "leases", "meta"} {
		err := s.readers.Do(ctx, func(ctx context.Context, c *conn, _ bool) (bool, error) {
			_, err := c.text(ctx, "VACUUM (FULL, ANALYZE) "+quoteIdentifier(s.db.schema)+"."+table)
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("rewrite table %s: %w", table, explain(err))
		}
	}
	return nil
}
