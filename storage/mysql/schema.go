package mysql

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"
)

// schemaVersion is what this program writes; taskctl_schema holds what is there.
const schemaVersion = 1

// migrations lead from the version that is their index to the next. Statements
// that change tables commit by themselves here, so each can be run again: a
// start that was cut short is finished by the next, and two at once make the
// same.
//
//   - taskctl_schema comes first and says whose the database is; its row comes
//     last and says that the version is complete.
//   - The row 0 of meta is the fence: a batch of an old session gives row 1 its
//     number, which the primary key refuses in every sql_mode.
//   - versions_key has what a list needs beside values, so that a million keys
//     load without touching the rows.
var migrations = [schemaVersion][]string{{
	"CREATE TABLE IF NOT EXISTS taskctl_schema (one BIGINT PRIMARY KEY, version BIGINT NOT NULL) ENGINE=InnoDB",
	`CREATE TABLE IF NOT EXISTS meta (
		one      BIGINT PRIMARY KEY,
		epoch    BIGINT NOT NULL,
		last_rev BIGINT NOT NULL,
		last_id  BIGINT NOT NULL,
		floor    BIGINT NOT NULL,
		swept    BIGINT NOT NULL,
		owner    VARBINARY(1024) NOT NULL,
		beats    BIGINT NOT NULL,
		term_ms  BIGINT NOT NULL,
		writer   BIGINT NOT NULL
	) ENGINE=InnoDB`,
	"CREATE TABLE IF NOT EXISTS versions (" +
		"id BIGINT PRIMARY KEY, rev BIGINT NOT NULL, sub BIGINT NOT NULL, prev BIGINT NOT NULL, create_rev BIGINT NOT NULL, " +
		"version BIGINT NOT NULL, lease BIGINT NOT NULL, deleted TINYINT NOT NULL, `key` VARBINARY(2048) NOT NULL, value LONGBLOB, " +
		"INDEX versions_key (`key`, id, rev, create_rev, version, lease, deleted)" +
		") ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
	"CREATE TABLE IF NOT EXISTS leases (id BIGINT PRIMARY KEY, ttl BIGINT NOT NULL, deadline BIGINT NOT NULL) ENGINE=InnoDB",
	begin + "INSERT IGNORE INTO meta VALUES (0, 0, 0, 0, 0, 0, '', 0, 0, 0), (1, 0, 1, 0, 0, 0, '', 0, 0, 0); " +
		"INSERT IGNORE INTO taskctl_schema VALUES (1, 1); " + commit,
}}

// migrate makes or updates the tables. It refuses a database that holds
// something else, or that a newer program made, and then writes nothing.
func (d *Database) migrate(ctx context.Context, c *conn) error {
	version, err := d.readVersion(ctx, c)
	if err != nil {
		return err
	}
	if version == schemaVersion {
		return d.checkPrivileges(ctx, c)
	}
	for ; version < schemaVersion; version++ {
		for _, statement := range migrations[version] {
			if _, err := c.exec(ctx, statement, nil); err != nil {
				if n := number(err); n == errNoPrivilege || n == errNoDatabaseGrant {
					return fmt.Errorf("the user may not make tables in database %q: %w; as an administrator: GRANT ALL ON %s.* TO the user",
						d.config.DBName, explain(err), quoteIdentifier(d.config.DBName))
				}
				return fmt.Errorf("make schema version %d in database %q: %w", version+1, d.config.DBName, explain(err))
			}
		}
	}
	return nil
}

// readVersion returns the version of the tables, 0 where they are missing or
// unfinished.
func (d *Database) readVersion(ctx context.Context, c *conn) (int, error) {
	var tables []string
	err := c.query(ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name", nil,
		func(_ int, columns []driver.Value) error {
			name, _ := columns[0].([]byte)
			tables = append(tables, string(name))
			return nil
		})
	if err != nil {
		return 0, explain(err)
	}
	if len(tables) == 0 {
		return 0, nil
	}
	if !slices.Contains(tables, "taskctl_schema") {
		return 0, fmt.Errorf("database %q holds tables of another program (%s); use an empty database", d.config.DBName, tables[0])
	}
	row, err := c.row(ctx, "SELECT version FROM taskctl_schema WHERE one = 1")
	if err != nil {
		return 0, explain(err)
	}
	if row == nil {
		return 0, nil
	}
	version, err := strconv.Atoi(row[0])
	if err != nil || version < 1 {
		return 0, fmt.Errorf("table taskctl_schema of database %q holds %q: it is damaged; restore a backup", d.config.DBName, row[0])
	}
	if version > schemaVersion {
		return 0, fmt.Errorf("database %q has schema version %d, this program knows up to %d; use a newer taskctl", d.config.DBName, version, schemaVersion)
	}
	return version, nil
}

// checkPrivileges refuses a user that could not do its work later, by
// statements that match no row.
func (d *Database) checkPrivileges(ctx context.Context, c *conn) error {
	const probe = begin +
		"UPDATE meta SET beats = beats WHERE one = -1; " +
		"INSERT INTO versions SELECT * FROM versions WHERE id = -1; DELETE FROM versions WHERE id = -1; " +
		"INSERT INTO leases SELECT * FROM leases WHERE id = 0 AND ttl = -1; DELETE FROM leases WHERE id = 0 AND ttl = -1; " +
		rollback
	if _, err := c.exec(ctx, probe, nil); err != nil {
		c.rollback(ctx)
		return fmt.Errorf("the user may not work with the tables of database %q: %w; as an administrator: GRANT ALL ON %s.* TO the user",
			d.config.DBName, explain(err), quoteIdentifier(d.config.DBName))
	}
	return nil
}
