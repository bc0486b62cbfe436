package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Config is where the file is and what may be used for it.
type Config struct {
	// Path of the database file. Its folder must exist.
	Path string
	// Readers is the number of reading connections; 0 means 4.
	Readers int
}

// Database is one SQLite file, locked against other processes.
type Database struct {
	path    string
	readers int
	lock    *os.File
}

var _ backend.Database = (*Database)(nil)

// Open locks the file, refuses one that is not ours or newer than this program
// without writing to it, and makes or migrates the schema. The caller closes
// the database.
func Open(_ context.Context, config Config) (*Database, error) {
	path, err := filepath.Abs(config.Path)
	if err != nil {
		return nil, err
	}
	// SQLite names the WAL after the file that it opens; two names of one
	// file must not become two WALs.
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	lock, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	d := &Database{path: path, readers: config.Readers, lock: lock}
	if d.readers <= 0 {
		d.readers = 4
	}
	if err := d.prepareFile(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Database) prepareFile() error {
	if err := checkHeader(d.path); err != nil {
		return err
	}
	c, err := openConn(d.path, true)
	if err != nil {
		return fmt.Errorf("open %s: %w; check that this user may write to it and its folder", d.path, err)
	}
	return errors.Join(migrate(c, d.path), c.close())
}

// Kind is "sqlite".
func (d *Database) Kind() string { return "sqlite" }

// Path is the file's absolute path.
func (d *Database) Path() string { return d.path }

// Close gives the lock back.
func (d *Database) Close() error { return d.lock.Close() }

// Acquire opens fresh connections and raises the epoch.
func (d *Database) Acquire(context.Context) (backend.Session, error) {
	writer, err := openConn(d.path, false)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.path, err)
	}
	s := &session{path: d.path, writer: writer, idle: make(chan *reader, d.readers)}
	if err := s.start(d.readers); err != nil {
		return nil, errors.Join(fmt.Errorf("take over %s: %w", d.path, err), s.Close())
	}
	return s, nil
}
