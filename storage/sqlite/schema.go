package sqlite

import (
	"errors"
	"fmt"
)

// schemaVersion is kept in SQLite's user_version.
const schemaVersion = 1

// migrations lead from the version that is their index to the next.
//
// The index on versions covers what a list needs beside values, so that a
// million keys load from it without touching the rows, and so that lists at
// old revisions are index scans.
var migrations = [schemaVersion]string{
	`CREATE TABLE meta (
		one      INTEGER PRIMARY KEY CHECK (one = 1),
		epoch    INTEGER NOT NULL,
		last_rev INTEGER NOT NULL CHECK (last_rev >= 0),
		last_id  INTEGER NOT NULL,
		floor    INTEGER NOT NULL,
		swept    INTEGER NOT NULL
	) STRICT;
	INSERT INTO meta VALUES (1, 0, 1, 0, 0, 0);
	CREATE TABLE versions (
		id         INTEGER PRIMARY KEY,
		rev        INTEGER NOT NULL,
		sub        INTEGER NOT NULL,
		prev       INTEGER NOT NULL,
		create_rev INTEGER NOT NULL,
		version    INTEGER NOT NULL,
		lease      INTEGER NOT NULL,
		deleted    INTEGER NOT NULL,
		key        BLOB NOT NULL,
		value      BLOB
	) STRICT;
	CREATE INDEX versions_key ON versions (key, rev, create_rev, version, lease, deleted);
	CREATE TABLE leases (
		id       INTEGER PRIMARY KEY,
		ttl      INTEGER NOT NULL,
		deadline INTEGER NOT NULL
	) STRICT;`,
}

// migrate makes or updates the schema in one transaction each and turns WAL on.
// A new file is filled under a rollback journal, so that its header names us
// from the moment that it has one.
func migrate(c *conn, path string) error {
	pages, err := c.integers("PRAGMA page_count")
	if err != nil {
		return err
	}
	from := int64(0)
	if pages[0] == 0 {
		if err := c.exec("PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
			return err
		}
	} else {
		application, err := c.integers("PRAGMA application_id")
		if err != nil {
			return err
		}
		version, err := c.integers("PRAGMA user_version")
		if err != nil {
			return err
		}
		if err := checkOurs(path, application[0], version[0]); err != nil {
			return err
		}
		from = version[0]
	}
	for version := from; version < schemaVersion; version++ {
		script := fmt.Sprintf("BEGIN IMMEDIATE; %s PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
			migrations[version], applicationID, version+1)
		if err := c.exec(script); err != nil {
			return errors.Join(fmt.Errorf("make schema version %d in %s: %w", version+1, path, err), c.exec("ROLLBACK"))
		}
	}
	return c.exec("PRAGMA journal_mode = WAL")
}
