package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/mattn/go-sqlite3"
)

// conn is one raw connection; it is used by one goroutine at a time.
type conn struct {
	raw        *sqlite3.SQLiteConn
	statements []*statement
}

// openConn opens the file with the settings that every connection must have.
// The file is created only with create.
func openConn(path string, create bool) (*conn, error) {
	mode := "rw"
	if create {
		mode = "rwc"
	}
	address := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "mode=" + mode}
	opened, err := (&sqlite3.SQLiteDriver{}).Open(address.String())
	if err != nil {
		return nil, err
	}
	c := &conn{raw: opened.(*sqlite3.SQLiteConn)}
	for _, pragma := range []string{
		"busy_timeout = 5000",
		"synchronous = FULL",
		"fullfsync = ON",
		"checkpoint_fullfsync = ON",
		"wal_autocheckpoint = 0",
		"cache_size = -8192",
		"temp_store = MEMORY",
	} {
		if err := c.exec("PRAGMA " + pragma); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// exec runs SQL without parameters whose rows nobody wants.
func (c *conn) exec(query string) error {
	_, err := c.raw.Exec(query, nil)
	return err
}

// integers runs a query without parameters and returns its first row, which
// must be integers.
func (c *conn) integers(query string) ([]int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	defer c.forget(s)
	var result []int64
	err = s.each(func(row []driver.Value) (bool, error) {
		for i, column := range row {
			n, ok := column.(int64)
			if !ok {
				return false, fmt.Errorf("column %d of %q is %T, not an integer", i, query, column)
			}
			result = append(result, n)
		}
		return false, nil
	})
	if err == nil && result == nil {
		err = fmt.Errorf("%q has no row", query)
	}
	return result, err
}

// prepare compiles a statement that lives as long as the connection.
func (c *conn) prepare(query string) (*statement, error) {
	prepared, err := c.raw.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	raw := prepared.(*sqlite3.SQLiteStmt)
	s := &statement{raw: raw, args: make([]driver.NamedValue, raw.NumInput())}
	for i := range s.args {
		s.args[i].Ordinal = i + 1
	}
	c.statements = append(c.statements, s)
	return s, nil
}

// forget closes the statement that was prepared last.
func (c *conn) forget(s *statement) {
	_ = s.raw.Close()
	c.statements = c.statements[:len(c.statements)-1]
}

func (c *conn) close() error {
	for _, s := range c.statements {
		_ = s.raw.Close()
	}
	c.statements = nil
	return c.raw.Close()
}

// statement is a prepared statement with room for its arguments.
type statement struct {
	raw  *sqlite3.SQLiteStmt
	args []driver.NamedValue
	row  []driver.Value
}

// set gives the arguments from position at (0 is the first) on.
func (s *statement) set(at int, values ...driver.Value) {
	for i, value := range values {
		s.args[at+i].Value = value
	}
}

// each runs the statement and calls fn for every row until fn returns false.
// The row's slice is reused; the byte slices in it are the callee's to keep.
func (s *statement) each(fn func(row []driver.Value) (more bool, err error)) error {
	rows, err := s.raw.QueryContext(context.Background(), s.args)
	if err != nil {
		return err
	}
	defer rows.Close()
	if s.row == nil {
		s.row = make([]driver.Value, len(rows.Columns()))
	}
	for {
		if err := rows.Next(s.row); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		more, err := fn(s.row)
		if err != nil || !more {
			return err
		}
	}
}

// run runs a statement that returns no rows.
func (s *statement) run() error {
	rows, err := s.raw.QueryContext(context.Background(), s.args)
	if err != nil {
		return err
	}
	return rows.Close()
}
