package mysql

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// Database is one MySQL or MariaDB database.
type Database struct {
	settings  Config
	config    *mysql.Config
	self      sqlstore.Identity
	maxPacket atomic.Int64 // max_allowed_packet, as last seen
}

var _ backend.Database = (*Database)(nil)

// Open checks that the server can be reached, is new enough, takes writes and
// loses no commits, refuses a database that is not ours or newer than this
// program without writing to it, and makes or migrates the tables. The caller
// closes the database.
//
// An error is one line that names the fix and holds no password.
func Open(ctx context.Context, settings Config) (*Database, error) {
	settings.setDefaults()
	config, err := settings.parse()
	if err != nil {
		return nil, err
	}
	d := &Database{settings: settings, config: config, self: sqlstore.NewIdentity()}
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	found, err := d.checkServer(ctx, c)
	if err != nil {
		return nil, err
	}
	d.maxPacket.Store(found.maxPacket)
	if err := d.migrate(ctx, c); err != nil {
		return nil, err
	}
	return d, nil
}

// Kind is "mysql".
func (d *Database) Kind() string { return "mysql" }

// Acquire takes the database over on new connections.
func (d *Database) Acquire(ctx context.Context) (backend.Session, error) {
	writer, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{db: d, writer: writer}
	s.ended, s.end = context.WithCancel(context.Background())
	if err := s.start(ctx); err != nil {
		s.end()
		s.writer.close()
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
	c, err := d.connect(ctx)
	if err != nil {
		return nil //nolint:nilerr // the term runs out by itself
	}
	defer c.close()
	_, err = c.exec(ctx, begin+"UPDATE meta SET owner = '', beats = beats + 1 WHERE one = 1 AND owner = ?; "+commit, arguments([]byte(d.self.Encode())))
	if number(err) != 0 {
		return fmt.Errorf("give back the ownership of the database: %w", explain(err))
	}
	return nil
}
