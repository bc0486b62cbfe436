package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// schemaVersion is what this program writes; taskctl_schema holds what is there.
const schemaVersion = 1

// migrationLock keeps two processes from making the schema at once. It belongs
// to the transaction, not to the session.
const migrationLock = 0x7461736b63746c

// migrations lead from the version that is their index to the next. SCHEMA. is
// replaced by the qualified schema.
//
//   - meta has room in its page for new copies of its one row, so that updates
//     of it stay there (HOT) and leave nothing to vacuum.
//   - versions_key has what a list needs beside values, so that a million keys
//     load without touching the rows. Its order is that of the queries: per
//     key the newest first.
//   - Values are not compressed: that would cost more than the rest of a write.
//   - The table is vacuumed early, so that the space of compacted rows is used
//     again and index-only scans find their visibility map.
var migrations = [schemaVersion]string{`
	CREATE TABLE SCHEMA.taskctl_schema (version bigint NOT NULL);
	INSERT INTO SCHEMA.taskctl_schema VALUES (1);
	CREATE TABLE SCHEMA.meta (
		one      bigint PRIMARY KEY CHECK (one = 1),
		epoch    bigint NOT NULL,
		last_rev bigint NOT NULL CHECK (last_rev >= 0),
		last_id  bigint NOT NULL,
		floor    bigint NOT NULL,
		swept    bigint NOT NULL,
		owner    text   NOT NULL,
		beats    bigint NOT NULL,
		term_ms  bigint NOT NULL
	) WITH (fillfactor = 10);
	INSERT INTO SCHEMA.meta VALUES (1, 0, 1, 0, 0, 0, '', 0, 0);
	CREATE TABLE SCHEMA.versions (
		id         bigint  PRIMARY KEY,
		rev        bigint  NOT NULL,
		sub        bigint  NOT NULL,
		prev       bigint  NOT NULL,
		create_rev bigint  NOT NULL,
		version    bigint  NOT NULL,
		lease      bigint  NOT NULL,
		deleted    boolean NOT NULL,
		key        bytea   NOT NULL,
		value      bytea
	) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
	ALTER TABLE SCHEMA.versions ALTER COLUMN value SET STORAGE EXTERNAL;
	CREATE INDEX versions_key ON SCHEMA.versions (key, id DESC) INCLUDE (rev, create_rev, version, lease, deleted);
	CREATE TABLE SCHEMA.leases (
		id       bigint PRIMARY KEY,
		ttl      bigint NOT NULL,
		deadline bigint NOT NULL
	);`,
}

// migrate makes or updates the tables in one transaction. It refuses a schema
// that holds something else, or that a newer program made, and then writes
// nothing.
func (d *Database) migrate(ctx context.Context, c *conn) error {
	begin := "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT set_config('synchronous_commit', 'on', true)"
	if _, err := c.text(ctx, begin); err != nil {
		return err
	}
	err := d.migrateLocked(ctx, c)
	if err == nil {
		_, err = c.text(ctx, "COMMIT")
	}
	if err != nil {
		c.rollback(ctx)
		var failed *pgconn.PgError
		if errors.As(err, &failed) && failed.Code == codePermission {
			return fmt.Errorf("role %q may not make the tables in schema %q of database %q: %s; as its owner: GRANT CREATE ON DATABASE %s TO %s; or name a schema of the role's own with ?search_path=SCHEMA",
				d.config.User, d.schema, d.config.Database, failed.Message, quoteIdentifier(d.config.Database), quoteIdentifier(d.config.User))
		}
		return explain(err)
	}
	return nil
}

func (d *Database) migrateLocked(ctx context.Context, c *conn) error {
	if _, err := c.text(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", int64(migrationLock))); err != nil {
		return err
	}
	exists, version, err := d.readVersion(ctx, c)
	if err != nil {
		return err
	}
	if version == schemaVersion {
		return d.checkPrivileges(ctx, c)
	}
	script := strings.Join(migrations[version:], ";")
	if !exists {
		script = "CREATE SCHEMA " + quoteIdentifier(d.schema) + ";" + script
	}
	_, err = c.text(ctx, strings.ReplaceAll(script, "SCHEMA.", quoteIdentifier(d.schema)+"."))
	return err
}

// readVersion returns whether the schema exists and the version of the tables
// in it, 0 where there are none.
func (d *Database) readVersion(ctx context.Context, c *conn) (exists bool, version int, err error) {
	namespace, err := c.text(ctx, "SELECT oid FROM pg_namespace WHERE nspname = "+quoteLiteral(d.schema))
	if err != nil || len(namespace) == 0 {
		return false, 0, err
	}
	tables, err := c.text(ctx, "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relnamespace = "+namespace[0][0])
	if err != nil || len(tables) == 0 {
		return true, 0, err
	}
	if !slices.ContainsFunc(tables, func(row []string) bool { return row[0] == "taskctl_schema" }) {
		return true, 0, fmt.Errorf("schema %q of database %q holds tables of another program (%s); use an empty database, or name another schema with ?search_path=SCHEMA",
			d.schema, d.config.Database, tables[0][0])
	}
	rows, err := c.text(ctx, "SELECT version FROM "+quoteIdentifier(d.schema)+".taskctl_schema")
	if err != nil {
		return true, 0, err
	}
	if len(rows) != 1 {
		return true, 0, fmt.Errorf("table taskctl_schema of schema %q has %d rows instead of one: it is damaged; restore a backup", d.schema, len(rows))
	}
	version, err = strconv.Atoi(rows[0][0])
	if err != nil || version < 1 {
		return true, 0, fmt.Errorf("table taskctl_schema of schema %q holds %q: it is damaged; restore a backup", d.schema, rows[0][0])
	}
	if version > schemaVersion {
		return true, 0, fmt.Errorf("schema %q of database %q has version %d, this program knows up to %d; use a newer taskctl",
			d.schema, d.config.Database, version, schemaVersion)
	}
	return true, version, nil
}

// checkPrivileges refuses a role that could not do its work later.
func (d *Database) checkPrivileges(ctx context.Context, c *conn) error {
	for _, table := range []string{"meta", "versions", "leases"} {
		for _, privilege := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
			full := quoteIdentifier(d.schema) + "." + table
			rows, err := c.text(ctx, fmt.Sprintf("SELECT has_table_privilege(%s, '%s')", quoteLiteral(full), privilege))
			if err != nil {
				return err
			}
			if rows[0][0] != "t" {
				return fmt.Errorf("role %q lacks %s on table %s; as its owner: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s",
					d.config.User, privilege, full, quoteIdentifier(d.schema), quoteIdentifier(d.config.User))
			}
		}
	}
	return nil
}

// text runs SQL without parameters, several statements too, and returns the
// rows of the last one that has any; NULL is an empty string.
func (c *conn) text(ctx context.Context, sql string) ([][]string, error) {
	results, err := c.pg.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, result := range results {
		if len(result.Rows) == 0 {
			continue
		}
		rows = nil
		for _, columns := range result.Rows {
			row := make([]string, len(columns))
			for i, column := range columns {
				row[i] = string(column)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// quoteLiteral makes a text safe to stand in SQL, whatever
// standard_conforming_strings is.
func quoteLiteral(text string) string {
	text = strings.ReplaceAll(text, `'`, `''`)
	return ` E'` + strings.ReplaceAll(text, `\`, `\\`) + `'`
}
