package mysql

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"

	"github.com/go-sql-driver/mysql"
)

const (
	// begin first ends what a lone statement may have begun: with autocommit
	// off each of them begins a transaction. The isolation level is for the
	// next transaction only.
	begin = rollback + "; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION; "
	// Whatever completion_type is.
	commit   = "COMMIT AND NO CHAIN NO RELEASE"
	rollback = "ROLLBACK AND NO CHAIN NO RELEASE"

	beginResults = 3 // results of begin
)

// conn is one connection of the driver, used by one goroutine at a time.
type conn struct{ raw rawConn }

// rawConn is what the driver's connections can do.
type rawConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.Validator
}

func (d *Database) connect(ctx context.Context) (*conn, error) {
	config := d.config.Clone()
	if packet := d.maxPacket.Load(); packet > 0 {
		config.MaxAllowedPacket = int(packet)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, explainConnect(config, err)
	}
	opened, err := connector.Connect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", ctx.Err(), err)
		}
		return nil, explainConnect(config, err)
	}
	return &conn{raw: opened.(rawConn)}, nil
}

// exec runs statements and returns how many rows each of them found. The
// server stops at the first that fails. args stand for the question marks.
func (c *conn) exec(ctx context.Context, sql string, args []driver.NamedValue) ([]int64, error) {
	result, err := c.raw.ExecContext(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return result.(mysql.Result).AllRowsAffected(), nil
}

// query runs statements and calls row for every row, with the position of its
// result among those that have columns. Byte slices are valid only during the
// call. An error of row is returned when everything has been read.
func (c *conn) query(ctx context.Context, sql string, args []driver.NamedValue, row func(result int, columns []driver.Value) error) error {
	rows, err := c.raw.QueryContext(ctx, sql, args)
	if err != nil {
		return err
	}
	var refused error
	for result := 0; ; result++ {
		columns := make([]driver.Value, len(rows.Columns()))
		for err == nil && refused == nil {
			if err = rows.Next(columns); err == nil {
				refused = row(result, columns)
			}
		}
		if refused == nil && err != io.EOF {
			break
		}
		// The driver reads over the rows that are left.
		if err = rows.(driver.RowsNextResultSet).NextResultSet(); err != nil {
			break
		}
	}
	closing := rows.Close()
	if err != nil && err != io.EOF {
		return err
	}
	if closing != nil {
		return closing
	}
	if refused != nil {
		return &refusal{refused}
	}
	return nil
}

// refusal is an error of query's callback: the connection is fine.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }

// rollback ends a transaction that failed. It reports whether the connection
// can be used on.
func (c *conn) rollback(ctx context.Context) bool {
	if !c.raw.IsValid() {
		return false
	}
	_, err := c.exec(ctx, rollback, nil)
	return err == nil
}

func (c *conn) close() {
	_ = c.raw.Close() // there is nothing more to lose on it
}

// arguments numbers values for the driver.
func arguments(values ...driver.Value) []driver.NamedValue {
	args := make([]driver.NamedValue, len(values))
	for i, value := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: value}
	}
	return args
}

// integers copies columns into *int64 and *bool.
func integers(columns []driver.Value, into ...any) error {
	for i, target := range into {
		n, ok := columns[i].(int64)
		if !ok {
			return fmt.Errorf("column %d is %T, not an integer: the database is damaged", i, columns[i])
		}
		switch target := target.(type) {
		case *int64:
			*target = n
		case *bool:
			*target = n != 0
		}
	}
	return nil
}
