package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// binaryFormat is the format code for every parameter and column.
var binaryFormat = []int16{1}

// conn is one connection, used by one goroutine at a time.
type conn struct {
	pg       *pgconn.PgConn
	proxied  bool
	prepared map[*statement]*pgconn.StatementDescription
	// warned is the first warning of the step that run is reading.
	warned *pgconn.Notice
}

// step is a statement of a pipeline with what becomes of its answer.
type step struct {
	statement *statement
	params    [][]byte
	// row gets each row; its slices are valid only during the call.
	row      func(columns [][]byte) error
	affected int64
}

// connect opens a connection and prepares the statements on it, unless a
// pooler may give the next transaction to another server connection.
func (d *Database) connect(ctx context.Context, prepare []*statement) (*conn, error) {
	c := &conn{}
	config := d.config.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if c.warned == nil && n.SeverityUnlocalized == "WARNING" {
			c.warned = n
		}
	}
	pg, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, explainConnect(d.config, err)
	}
	c.pg = pg
	if err := c.setUp(ctx, prepare); err != nil {
		c.close()
		return nil, explain(err)
	}
	return c, nil
}

func (c *conn) setUp(ctx context.Context, prepare []*statement) error {
	// A pooler hands out process numbers of its own.
	pid := &statement{sql: "SELECT pg_backend_pid()::bigint"}
	c.proxied = true
	steps := []step{{statement: pid, row: func(columns [][]byte) error {
		var server int64
		err := decodeInts(columns, &server)
		c.proxied = server != int64(c.pg.PID())
		return err
	}}}
	if _, err := c.run(ctx, steps); err != nil {
		return err
	}
	if c.proxied {
		return nil
	}
	if _, err := c.pg.Exec(ctx, "SELECT "+tuning("set_config('%s', '%s', false)")).ReadAll(); err != nil {
		return err
	}
	c.prepared = make(map[*statement]*pgconn.StatementDescription, len(prepare))
	for _, s := range prepare {
		description, err := c.pg.Prepare(ctx, s.name, s.sql, s.params)
		if err != nil {
			return fmt.Errorf("prepare %s: %w", s.name, err)
		}
		c.prepared[s] = description
	}
	return nil
}

// run sends all steps in one write and reads their answers. The server stops
// at the first that fails. completed is the number of steps that succeeded.
// A row callback's error is returned when all answers have been read.
func (c *conn) run(ctx context.Context, steps []step) (completed int, err error) {
	var batch pgconn.Batch
	for i := range steps {
		s := steps[i].statement
		if description := c.prepared[s]; description != nil {
			batch.ExecStatement(description, steps[i].params, binaryFormat, binaryFormat)
		} else {
			batch.ExecParams(s.sql, steps[i].params, s.params, binaryFormat, binaryFormat)
		}
	}
	var refused error
	answers := c.pg.ExecBatch(ctx, &batch)
	for i := range steps {
		c.warned = nil
		if !answers.NextResult() {
			break
		}
		answer := answers.ResultReader()
		for answer.NextRow() {
			if refused == nil && steps[i].row != nil {
				refused = steps[i].row(answer.Values())
			}
		}
		tag, err := answer.Close()
		if err != nil {
			break
		}
		steps[i].affected = tag.RowsAffected()
		completed++
	}
	if err := answers.Close(); err != nil {
		return completed, err
	}
	if completed < len(steps) {
		return completed, fmt.Errorf("the server answered %d of %d statements", completed, len(steps))
	}
	return completed, refused
}

// rollback ends a transaction that failed. It reports whether the connection
// can be used on.
func (c *conn) rollback(ctx context.Context) bool {
	if c.pg.IsClosed() {
		return false
	}
	if c.pg.TxStatus() == 'I' {
		return true
	}
	_, err := c.pg.Exec(ctx, "ROLLBACK").ReadAll()
	return err == nil && c.pg.TxStatus() == 'I'
}

// close says goodbye to the server, but does not wait for it long.
func (c *conn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.pg.Close(ctx) // there is nothing more to lose on it
}
