package mysql

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Size is the size of the tables' files, where the user has the PROCESS
// privilege that MySQL asks for; otherwise it is estimated from the statistics
// that InnoDB keeps.
func (s *session) Size(ctx context.Context) (backend.Size, error) {
	var data, free, files int64
	measure := func(sql string, into ...any) error {
		return s.read(ctx, 0, func() selection {
			return selection{sql: sql, row: func(_ int, columns []driver.Value) error { return integers(columns, into...) }}
		})
	}
	refresh := ""
	if !s.server.mariadb {
		// MySQL answers with day-old statistics unless told otherwise.
		refresh = "SET SESSION information_schema_stats_expiry = 0; "
	}
	err := measure(refresh+"SELECT CAST(COALESCE(SUM(data_length + index_length), 0) AS SIGNED), CAST(COALESCE(SUM(data_free), 0) AS SIGNED) "+
		"FROM information_schema.tables WHERE table_schema = DATABASE(); ", &data, &free)
	if err != nil {
		return backend.Size{}, fmt.Errorf("measure database %q: %w", s.db.config.DBName, err)
	}
	spaces := "information_schema.innodb_tablespaces"
	if s.server.mariadb {
		spaces = "information_schema.innodb_sys_tablespaces"
	}
	err = measure("SELECT CAST(COALESCE(SUM(file_size), 0) AS SIGNED) FROM "+spaces+" WHERE name LIKE CONCAT(DATABASE(), '/%'); ", &files)
	if err != nil && number(err) != errNeedsPrivilege {
		return backend.Size{}, fmt.Errorf("measure the files of database %q: %w", s.db.config.DBName, err)
	}
	size := backend.Size{Allocated: max(files, data+free)}
	size.InUse = size.Allocated - free
	return size, nil
}

// Maintain has nothing to do: InnoDB purges deleted rows and uses their space
// again by itself.
func (s *session) Maintain(context.Context) (more bool, err error) { return false, nil }

// Defragment rebuilds the tables without unused space.
func (s *session) Defragment(ctx context.Context) error {
	return s.readers.Do(ctx, func(ctx context.Context, c *conn, _ bool) (bool, error) {
		err := c.query(ctx, "OPTIMIZE TABLE versions, leases, meta", nil, func(_ int, columns []driver.Value) error {
			kind, _ := columns[2].([]byte)
			text, _ := columns[3].([]byte)
			if string(kind) == "error" || string(kind) == "Error" {
				return fmt.Errorf("rebuild the tables: %s", text)
			}
			return nil
		})
		return err == nil, explain(err)
	})
}
