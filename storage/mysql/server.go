package mysql

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
)

// server is what a connection found out about the server.
type server struct {
	mariadb   bool
	maxPacket int64 // max_allowed_packet
}

// checkServer refuses a server that is too old, that takes no writes or that
// is set to lose commits.
func (d *Database) checkServer(ctx context.Context, c *conn) (server, error) {
	columns, err := c.row(ctx, `SELECT @@version, CAST(@@global.innodb_flush_log_at_trx_commit AS CHAR), CAST(@@global.log_bin AS CHAR),
		CAST(@@global.sync_binlog AS CHAR), CAST(@@global.read_only AS CHAR), CAST(@@global.max_allowed_packet AS CHAR)`)
	if err != nil {
		return server{}, explain(err)
	}
	version, flush, binlog, syncBinlog, readOnly := columns[0], columns[1], columns[2], columns[3], columns[4]
	where := "MySQL at " + d.config.Addr
	s := server{mariadb: strings.Contains(version, "MariaDB")}
	if !newEnough(version, s.mariadb) {
		return server{}, fmt.Errorf("%s is too old (%s); use MySQL 8.0, MariaDB 10.6, or newer", where, version)
	}
	if isOn(readOnly) {
		return server{}, fmt.Errorf("%s has read_only=%s and takes no writes; give the primary's address", where, readOnly)
	}
	if flush != "1" {
		return server{}, fmt.Errorf("%s has innodb_flush_log_at_trx_commit=%s and would lose acknowledged writes; set it to 1 (SET GLOBAL, and my.cnf)", where, flush)
	}
	// With a binary log the log decides after a crash which transactions
	// have committed; one that was not synced undoes them.
	if isOn(binlog) && syncBinlog != "1" {
		return server{}, fmt.Errorf("%s writes a binary log with sync_binlog=%s and would lose acknowledged writes; set sync_binlog to 1 (SET GLOBAL, and my.cnf)", where, syncBinlog)
	}
	redo, err := c.row(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'")
	if err != nil {
		return server{}, explain(err)
	}
	if len(redo) == 2 && redo[1] == "OFF" {
		return server{}, fmt.Errorf("%s has its redo log disabled and would lose acknowledged writes; run ALTER INSTANCE ENABLE INNODB REDO_LOG", where)
	}
	if s.maxPacket, err = strconv.ParseInt(columns[5], 10, 64); err != nil || s.maxPacket < smallestPacket {
		return server{}, fmt.Errorf("%s has max_allowed_packet=%s; set it to 16M or more (SET GLOBAL, and my.cnf)", where, columns[5])
	}
	return s, nil
}

// isOn reads a setting that is on or off. Servers differ in whether they say it
// in words.
func isOn(setting string) bool { return setting != "0" && setting != "OFF" }

// smallestPacket still takes a key of any length and a batch of small values.
const smallestPacket = 256 << 10

func newEnough(version string, mariadb bool) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	if mariadb {
		return major > 10 || major == 10 && minor >= 6
	}
	return major >= 8
}

// row returns the first row of a query as texts, nil where there is none.
func (c *conn) row(ctx context.Context, sql string, values ...driver.Value) ([]string, error) {
	var first []string
	err := c.query(ctx, sql, arguments(values...), func(_ int, columns []driver.Value) error {
		if first == nil {
			first = make([]string, len(columns))
			for i, column := range columns {
				switch column := column.(type) {
				case []byte:
					first[i] = string(column)
				case nil:
				default:
					first[i] = fmt.Sprint(column)
				}
			}
		}
		return nil
	})
	return first, err
}
