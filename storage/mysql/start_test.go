package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/mysql"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

// secret is the password of every address below. No error may hold it.
const secret = "pa55-w0rd"

// with changes an address.
func with(t *testing.T, dsn string, change func(*driver.Config)) string {
	t.Helper()
	config, err := driver.ParseDSN(strings.TrimPrefix(dsn, "mysql://"))
	if err != nil {
		t.Fatal(err)
	}
	change(config)
	return "mysql://" + config.FormatDSN()
}

func databaseOf(t *testing.T, dsn string) (name string) {
	t.Helper()
	with(t, dsn, func(c *driver.Config) { name = c.DBName })
	return name
}

// TestRefusedAtStart checks what is refused, by which words, and that nothing
// was written.
func TestRefusedAtStart(t *testing.T) {
	server := dbserver.StartMariaDB(t).DSN // one on which users can be made
	exec := func(t *testing.T, dsn, sql string) { t.Helper(); dbserver.ExecMySQL(t, dsn, sql) }
	// user makes a user with the given privileges on the store.
	user := func(t *testing.T, store, privileges string) string {
		t.Helper()
		name := fmt.Sprintf("user_%d", time.Now().UnixNano()%1e12)
		exec(t, server, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", name, secret))
		t.Cleanup(func() { exec(t, server, fmt.Sprintf("DROP USER %s@'%%'", name)) })
		if privileges != "" {
			exec(t, server, fmt.Sprintf("GRANT %s ON %s.* TO %s@'%%'", privileges, databaseOf(t, store), name))
		}
		return with(t, store, func(c *driver.Config) { c.User, c.Passwd = name, secret })
	}
	tests := []struct {
		name string
		// dsn prepares the database and returns the address to open.
		dsn  func(t *testing.T, store string) string
		want []string
	}{
		{"no address", func(*testing.T, string) string { return "" }, []string{"mysql://user:password@tcp(host:3306)/database"}},
		{"an address of another kind", func(*testing.T, string) string { return "postgres://u:" + secret + "@h/d" }, []string{"mysql://user:password@tcp"}},
		{"an address without a slash", func(*testing.T, string) string { return "mysql://u:" + secret + "@tcp(h:3306)" }, []string{"cannot be parsed"}},
		{"an unknown protocol", func(*testing.T, string) string { return "mysql://u:" + secret + "@pigeon(h:3306)/d" }, []string{"cannot be"}},
		{"no database", func(t *testing.T, store string) string {
			return with(t, store, func(c *driver.Config) { c.DBName, c.Passwd = "", secret })
		}, []string{"names no database"}},
		{"nobody listens", func(*testing.T, string) string { return "mysql://u:" + secret + "@tcp(127.0.0.1:1)/d" }, []string{"127.0.0.1:1", "connection refused", "start the server"}},
		{"nobody listens, in the form of a URL", func(*testing.T, string) string { return "mysql://u:" + secret + "@127.0.0.1:1/d" }, []string{"127.0.0.1:1", "connection refused"}},
		{"a host that does not exist", func(*testing.T, string) string { return "mysql://u:" + secret + "@tcp(does-not-exist.invalid:3306)/d" }, []string{"does-not-exist.invalid", "correct the address"}},
		{"a server without TLS", func(t *testing.T, store string) string {
			return with(t, store, func(c *driver.Config) { c.TLSConfig = "true" })
		}, []string{"take tls= out of the address"}},
		{"a wrong password", func(t *testing.T, store string) string {
			return with(t, store, func(c *driver.Config) { c.Passwd = secret })
		}, []string{"check user and password"}},
		{"a database that does not exist", func(t *testing.T, store string) string {
			return with(t, store, func(c *driver.Config) { c.DBName = "missing" })
		}, []string{"CREATE DATABASE `missing`"}},
		{"a user that may not use the database", func(t *testing.T, store string) string { return user(t, store, "") }, []string{"GRANT ALL ON"}},
		{"a user that may not make tables", func(t *testing.T, store string) string { return user(t, store, "SELECT, INSERT, UPDATE, DELETE") }, []string{"may not make tables", "GRANT ALL ON"}},
		{"a user that may only read", func(t *testing.T, store string) string {
			made(t, store)
			return user(t, store, "SELECT")
		}, []string{"may not work with the tables", "GRANT ALL ON"}},
		{"tables of another program", func(t *testing.T, store string) string {
			exec(t, store, "CREATE TABLE kine (id INT)")
			return store
		}, []string{"another program (kine)", "empty database"}},
		{"a newer schema", func(t *testing.T, store string) string {
			made(t, store)
			exec(t, store, "UPDATE taskctl_schema SET version = 99")
			return store
		}, []string{"version 99", "use a newer taskctl"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := dbserver.NewMySQLDatabase(t, server)
			dsn := test.dsn(t, store)
			before := contents(t, store)
			d, err := mysql.Open(t.Context(), mysql.Config{DSN: dsn})
			if err == nil {
				t.Fatalf("it was opened: %v", d.Close())
			}
			checkMessage(t, err, test.want)
			if after := contents(t, store); after != before {
				t.Errorf("the database changed from %s to %s", before, after)
			}
		})
	}
}

// checkMessage checks that an error is one line for people.
func checkMessage(t *testing.T, err error, want []string) {
	t.Helper()
	text := err.Error()
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("the error should say %q: %s", part, text)
		}
	}
	if strings.Contains(text, "\n") || len(text) > 500 {
		t.Errorf("the error is not one line: %s", text)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), secret) {
			t.Errorf("the error tells the password: %s", e)
		}
	}
}

// made makes the tables.
func made(t *testing.T, dsn string) {
	t.Helper()
	d, err := mysql.Open(t.Context(), mysql.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// contents tells what is in a database.
func contents(t *testing.T, dsn string) string {
	t.Helper()
	text := dbserver.QueryMySQL(t, dsn, "SELECT COALESCE(GROUP_CONCAT(table_name ORDER BY table_name), 'nothing') FROM information_schema.tables WHERE table_schema = DATABASE()")
	if strings.Contains(text, "meta") {
		text += dbserver.QueryMySQL(t, dsn, "SELECT CONCAT_WS(',', epoch, last_rev, last_id, floor, swept, owner, beats, term_ms, writer) FROM meta WHERE one = 1")
	}
	return text
}

// TestHalfMadeSchema checks that a start that was cut short between two tables
// is finished by the next one.
func TestHalfMadeSchema(t *testing.T) {
	dsn := dbserver.MySQL(t)
	dbserver.ExecMySQL(t, dsn, "CREATE TABLE taskctl_schema (one BIGINT PRIMARY KEY, version BIGINT NOT NULL) ENGINE=InnoDB")
	made(t, dsn)
	if version := dbserver.QueryMySQL(t, dsn, "SELECT version FROM taskctl_schema"); version != "1" {
		t.Errorf("schema version %s", version)
	}
}

// TestUnsafeServer checks the settings that lose commits, and that they are
// looked at again when a running store takes over.
func TestUnsafeServer(t *testing.T) {
	server := dbserver.StartMariaDB(t, "--log-bin=log", "--sync-binlog=1", "--server-id=1")
	d, err := mysql.Open(t.Context(), mysql.Config{DSN: server.DSN, Term: term})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, test := range []struct{ unsafe, safe, want string }{
		{"innodb_flush_log_at_trx_commit = 2", "innodb_flush_log_at_trx_commit = 1", "innodb_flush_log_at_trx_commit=2"},
		{"innodb_flush_log_at_trx_commit = 0", "innodb_flush_log_at_trx_commit = 1", "innodb_flush_log_at_trx_commit=0"},
		{"sync_binlog = 0", "sync_binlog = 1", "sync_binlog=0"},
		{"read_only = 1", "read_only = 0", "read_only=ON"},
	} {
		dbserver.ExecMySQL(t, server.DSN, "SET GLOBAL "+test.unsafe)
		_, err := mysql.Open(t.Context(), mysql.Config{DSN: server.DSN})
		if err == nil {
			t.Fatalf("opened with %s", test.unsafe)
		}
		checkMessage(t, err, []string{test.want})
		if _, err := d.Acquire(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("acquired with %s: %v", test.unsafe, err)
		}
		dbserver.ExecMySQL(t, server.DSN, "SET GLOBAL "+test.safe)
	}
	session, err := d.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

// TestSecondProcess checks that an owner that lives is named.
func TestSecondProcess(t *testing.T) {
	dsn := dbserver.MySQL(t)
	open := func() *mysql.Database {
		d, err := mysql.Open(t.Context(), mysql.Config{DSN: dsn, Term: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d
	}
	session, err := open().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = open().Acquire(ctx)
	if !errors.Is(err, backend.ErrOwned) {
		t.Fatalf("a second owner: %v", err)
	}
	checkMessage(t, err, []string{"in use by another process", "process ", "host "})
}
