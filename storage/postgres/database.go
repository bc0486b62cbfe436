package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// Database is one schema in a PostgreSQL database.
type Database struct {
	settings Config
	config   *pgconn.Config
	schema   string
	sql      *statements
	self     sqlstore.Identity
}

var _ backend.Database = (*Database)(nil)

// Open checks that the server can be reached, is new enough, is a primary and
// loses no commits, refuses a schema that is not ours or newer than this
// program without writing to it, and makes or migrates the tables. The caller
// closes the database.
//
// An error is one line that names the fix and holds no password.
func Open(ctx context.Context, settings Config) (*Database, error) {
	settings.setDefaults()
	config, schema, err := settings.parse()
	if err != nil {
		return nil, err
	}
	d := &Database{settings: settings, config: config, schema: schema, sql: newStatements(schema), self: sqlstore.NewIdentity()}
	c, err := d.connect(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if _, err := d.checkServer(ctx, c); err != nil {
		return nil, err
	}
	if err := d.migrate(ctx, c); err != nil {
		return nil, err
	}
	return d, nil
}

// Kind is "postgres".
func (d *Database) Kind() string { return "postgres" }

// Acquire takes the database over on new connections.
func (d *Database) Acquire(ctx context.Context) (backend.Session, error) {
	writer, err := d.connect(ctx, d.sql.writing())
	if err != nil {
		return nil, err
	}
	s := &session{db: d, writer: writer}
	s.ended, s.end = context.WithCancel(context.Background())
	if err := s.start(ctx); err != nil {
		s.end()
		writer.close()
		return nil, err
	}
	return s, nil
}

// releaseTimeout bounds giving the ownership back: it only saves the next
// owner from waiting.
const releaseTimeout = 2 * time.Second

// Close gives the ownership back, so that the next owner need not wait for the
// end of the term.
func (d *Database) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	c, err := d.connect(ctx, nil)
	if err != nil {
		return nil //nolint:nilerr // the term runs out by itself
	}
	defer c.close()
	release := &statement{
		sql:    fmt.Sprintf("UPDATE %s.meta SET owner = '', beats = beats + 1 WHERE one = 1 AND owner = $1", quoteIdentifier(d.schema)),
		params: []uint32{oidText},
	}
	steps := []step{{statement: d.sql.beginWrite}, {statement: d.sql.secure, params: [][]byte{[]byte("local")}},
		{statement: release, params: [][]byte{[]byte(d.self.Encode())}}, {statement: d.sql.commit}}
	if _, err := c.run(ctx, steps); err != nil && !isConnectionError(err) {
		return errors.Join(fmt.Errorf("give back the ownership of the database: %w", explain(err)))
	}
	return nil
}
