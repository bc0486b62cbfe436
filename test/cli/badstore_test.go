package cli

import (
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	_ "github.com/mattn/go-sqlite3" // makes files that are not ours

	"github.com/taskctl-dev/taskctl/test/dbserver"
)

// A store that cannot be served is refused by storage serve with one line that
// names the fix, and nothing is written to it.

// password is in every address that has room for one.
const password = "pa55-w0rd"

// refuses runs storage serve on a database that it has to refuse.
func (s *shell) refuses(code int, spec string, texts ...string) {
	s.t.Helper()
	result := s.must(code, "storage", "serve", "--storage", spec, "--data-dir", filepath.Join(s.home, "store"), "--listen", "http://127.0.0.1:0")
	checkError(s.t, result, texts...)
	if result.Stdout != "" || strings.Contains(result.Stderr, password) {
		s.t.Errorf("stdout %q, stderr %q", result.Stdout, result.Stderr)
	}
}

// serves runs storage serve on a database until the test ends.
func (s *shell) serves(spec, folder string) *background {
	s.t.Helper()
	serve := s.start("storage", "serve", "--storage", spec, "--data-dir", filepath.Join(s.home, folder), "--listen", "http://127.0.0.1:0")
	serve.await("http://127.0.0.1:")
	return serve
}

// makes has storage serve make the tables of a store and end.
func (s *shell) makes(spec string) {
	s.t.Helper()
	serve := s.serves(spec, "maker")
	serve.signal(syscall.SIGTERM)
	if code := serve.wait(limit); code != 0 {
		s.t.Fatalf("code %d: %s", code, serve.stderr)
	}
}

func TestBadSQLiteFiles(t *testing.T) {
	run := func(t *testing.T, path string, statements ...string) {
		t.Helper()
		db, err := sql.Open("sqlite3", path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		for _, statement := range statements {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	s := newShell(t)
	for _, test := range []struct {
		name string
		make func(s *shell, path string)
		want []string
	}{
		{"a text", func(s *shell, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("not a database\n"), 100), 0o600); err != nil {
				s.t.Fatal(err)
			}
		}, []string{"is not a SQLite database", "choose another file"}},
		{"another program's database", func(s *shell, path string) {
			run(s.t, path, "CREATE TABLE kine (id INTEGER)")
		}, []string{"a SQLite database of another program", "choose another file"}},
		{"a newer schema", func(s *shell, path string) {
			s.makes("sqlite://" + path)
			run(s.t, path, "PRAGMA user_version = 99", "PRAGMA wal_checkpoint(TRUNCATE)")
		}, []string{"schema version 99", "use a newer taskctl"}},
		{"a store that is in use", func(s *shell, path string) { s.serves("sqlite://"+path, "other") },
			[]string{"in use by another process", "stop that one first"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := s.in(t)
			path := filepath.Join(t.TempDir(), "store.db")
			test.make(s, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s.refuses(1, "sqlite://"+path, append(test.want, path)...)
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file has changed: %v", err)
			}
		})
	}
	t.Run("a folder that does not exist", func(t *testing.T) {
		s.in(t).refuses(1, "sqlite:///does/not/exist/store.db", "/does/not/exist", "folder")
	})
	t.Run("no name", func(t *testing.T) { s.in(t).refuses(2, "sqlite://", "needs the path of a file") })
}

func TestBadPostgresServers(t *testing.T) {
	shared := dbserver.PostgresServer(t)
	address, err := url.Parse(shared)
	if err != nil {
		t.Fatal(err)
	}
	number := dbserver.ExecPostgres(t, shared, "SHOW server_version_num")[0][0]
	proxy := dbserver.NewProxy(t, address.Host)
	proxy.Pretend(number, "120022")
	with := func(dsn string, change func(*url.URL)) string {
		changed, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		change(changed)
		return changed.String()
	}
	as := func(dsn, user string) string {
		return with(dsn, func(u *url.URL) { u.User = url.UserPassword(user, password) })
	}
	role := "role_" + strings.ToLower(strings.NewReplacer("/", "_").Replace(t.Name()))
	dbserver.ExecPostgres(t, shared, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() { dbserver.ExecPostgres(t, shared, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	s := newShell(t)
	tests := []struct {
		name string
		dsn  func(s *shell, store string) string
		code int
		want []string
	}{
		{"nobody listens", func(*shell, string) string { return "postgres://u:" + password + "@" + closedPort(t) + "/d" }, 1,
			[]string{"connection refused", "start the server"}},
		{"an old version", func(_ *shell, store string) string {
			return as(with(store, func(u *url.URL) { u.Host = proxy.Address() }), "taskctl")
		}, 1, []string{"is too old", "use PostgreSQL 13 or newer"}},
		{"a role that may not make a schema", func(_ *shell, store string) string { return as(store, role) }, 1, []string{"GRANT CREATE ON DATABASE"}},
		{"a role that does not exist", func(_ *shell, store string) string { return as(store, "nobody_at_all") }, 1, []string{"check user and password"}},
		{"an address that is none", func(*shell, string) string { return "postgres://u:" + password + "@h:port/d" }, 2, []string{"postgres://"}},
		{"a setting that loses writes", func(_ *shell, store string) string {
			return with(store, func(u *url.URL) { u.RawQuery += "&synchronous_commit=off" })
		}, 1, []string{"synchronous_commit=off", "would lose acknowledged writes", "set it to on"}},
		{"tables of another program", func(s *shell, store string) string {
			schema := schemaOf(store)
			dbserver.ExecPostgres(s.t, shared, "CREATE SCHEMA "+schema+"; CREATE TABLE "+schema+".kine (id int)")
			return store
		}, 1, []string{"another program (kine)", "search_path=SCHEMA"}},
		{"a newer schema", func(s *shell, store string) string {
			s.makes(store)
			dbserver.ExecPostgres(s.t, shared, "UPDATE "+schemaOf(store)+".taskctl_schema SET version = 99")
			return store
		}, 1, []string{"version 99", "use a newer taskctl"}},
		{"a store that is in use", func(s *shell, store string) string { s.serves(store, "other"); return store }, 1,
			[]string{"in use by another process", "stop that one first"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, store := s.in(t), dbserver.Postgres(t)
			dsn := test.dsn(s, store)
			before := tablesOf(t, shared, store)
			s.refuses(test.code, dsn, test.want...)
			if after := tablesOf(t, shared, store); after != before {
				t.Errorf("the database changed from %s to %s", before, after)
			}
		})
	}
}

func schemaOf(dsn string) string {
	_, schema, _ := strings.Cut(dsn, "search_path=")
	schema, _, _ = strings.Cut(schema, "&")
	return schema
}

// tablesOf tells which tables a store has and who made them when.
func tablesOf(t *testing.T, server, dsn string) string {
	t.Helper()
	return fmt.Sprint(dbserver.ExecPostgres(t, server,
		"SELECT relname, xmin FROM pg_class WHERE relnamespace = to_regnamespace('"+schemaOf(dsn)+"') ORDER BY relname"))
}

func TestBadMySQLServers(t *testing.T) {
	shared := dbserver.MySQLServer(t)
	with := func(dsn string, change func(*driver.Config)) string {
		config, err := driver.ParseDSN(strings.TrimPrefix(dsn, "mysql://"))
		if err != nil {
			t.Fatal(err)
		}
		change(config)
		return "mysql://" + config.FormatDSN()
	}
	var proxy *dbserver.Proxy
	with(shared, func(c *driver.Config) { proxy = dbserver.NewProxy(t, c.Addr) })
	version := dbserver.QueryMySQL(t, shared, "SELECT @@version")
	proxy.Pretend(version, "5.1"+version[3:])
	s := newShell(t)
	for _, test := range []struct {
		name string
		dsn  func(s *shell, store string) string
		code int
		want []string
	}{
		{"nobody listens", func(*shell, string) string { return "mysql://u:" + password + "@tcp(" + closedPort(t) + ")/d" }, 1,
			[]string{"connection refused", "start the server"}},
		{"an old version", func(_ *shell, store string) string {
			return with(store, func(c *driver.Config) { c.Addr = proxy.Address() })
		}, 1, []string{"is too old", "MariaDB 10.6, or newer"}},
		{"a wrong password", func(_ *shell, store string) string {
			return with(store, func(c *driver.Config) { c.Passwd = password })
		}, 1, []string{"check user and password"}},
		{"an address that is none", func(*shell, string) string { return "mysql://u:" + password + "@tcp(h:3306)" }, 2, []string{"mysql://"}},
		{"tables of another program", func(s *shell, store string) string {
			dbserver.ExecMySQL(s.t, store, "CREATE TABLE kine (id INT)")
			return store
		}, 1, []string{"another program (kine)", "empty database"}},
		{"a newer schema", func(s *shell, store string) string {
			s.makes(store)
			dbserver.ExecMySQL(s.t, store, "UPDATE taskctl_schema SET version = 99")
			return store
		}, 1, []string{"version 99", "use a newer taskctl"}},
		{"a store that is in use", func(s *shell, store string) string { s.serves(store, "other"); return store }, 1,
			[]string{"in use by another process", "stop that one first"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, store := s.in(t), dbserver.MySQL(t)
			s.refuses(test.code, test.dsn(s, store), test.want...)
		})
	}
}

// TestUnsafeMySQLServer needs a server whose settings it may change.
func TestUnsafeMySQLServer(t *testing.T) {
	server := dbserver.StartMariaDB(t)
	dbserver.ExecMySQL(t, server.DSN, "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	newShell(t).refuses(1, server.DSN, "innodb_flush_log_at_trx_commit=2", "would lose acknowledged writes", "set it to 1")
}

// closedPort is an address of this machine that nobody listens on.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
