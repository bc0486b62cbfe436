package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/postgres"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

// secret is the password of every address below. No error may hold it.
const secret = "pa55-w0rd"

// with changes an address.
func with(t *testing.T, dsn string, change func(*url.URL)) string {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	change(address)
	return address.String()
}

// TestRefusedAtStart checks what is refused, by which words, and that nothing
// was written.
func TestRefusedAtStart(t *testing.T) {
	server := dbserver.PostgresServer(t)
	exec := func(t *testing.T, dsn, sql string) { t.Helper(); dbserver.ExecPostgres(t, dsn, sql) }
	role := func(t *testing.T) string {
		name := fmt.Sprintf("role_%d", time.Now().UnixNano())
		exec(t, server, "CREATE ROLE "+name+" LOGIN")
		t.Cleanup(func() { exec(t, server, "DROP OWNED BY "+name+"; DROP ROLE "+name) })
		return name
	}
	as := func(t *testing.T, dsn, name string) string {
		return with(t, dsn, func(u *url.URL) { u.User = url.UserPassword(name, secret) })
	}
	tests := []struct {
		name string
		// dsn prepares the database and returns the address to open.
		dsn  func(t *testing.T, store string) string
		want []string
	}{
		{"no address", func(*testing.T, string) string { return "" }, []string{"postgres://user:password@host"}},
		{"an address of another kind", func(*testing.T, string) string { return "mysql://u:" + secret + "@h/d" }, []string{"postgres://user:password@host"}},
		{"a password that is not escaped", func(*testing.T, string) string { return "postgres://u:" + secret + "/x@h:5432/d" }, []string{"%2F"}},
		{"a port that is no number", func(*testing.T, string) string { return "postgres://u:" + secret + "@h:port/d" }, []string{"cannot be parsed"}},
		{"a wrong sslmode", func(*testing.T, string) string { return "postgres://u:" + secret + "@h/d?sslmode=sometimes" }, []string{"sslmode=sometimes"}},
		{"no database", func(t *testing.T, store string) string {
			return with(t, store, func(u *url.URL) { u.Path = ""; u.User = url.UserPassword("taskctl", secret) })
		}, []string{"names no database"}},
		{"nobody listens", func(*testing.T, string) string { return "postgres://u:" + secret + "@127.0.0.1:1/d" }, []string{"127.0.0.1:1", "connection refused", "start the server"}},
		{"a host that does not exist", func(*testing.T, string) string { return "postgres://u:" + secret + "@does-not-exist.invalid/d" }, []string{"does-not-exist.invalid", "correct the address"}},
		{"a server without TLS", func(t *testing.T, store string) string {
			return with(t, store, func(u *url.URL) {
				query := u.Query()
				query.Set("sslmode", "require")
				u.RawQuery = query.Encode()
			})
		}, []string{"sslmode=disable"}},
		{"a database that does not exist", func(t *testing.T, store string) string {
			return with(t, store, func(u *url.URL) { u.Path = "/missing"; u.User = url.UserPassword("taskctl", secret) })
		}, []string{`CREATE DATABASE "missing"`}},
		{"a role that does not exist", func(t *testing.T, store string) string { return as(t, store, "nobody_at_all") }, []string{"nobody_at_all", "check user and password"}},
		{"a role that may not make a schema", func(t *testing.T, store string) string { return as(t, store, role(t)) }, []string{"GRANT CREATE ON DATABASE", "search_path=SCHEMA"}},
		{"a role that may only read", func(t *testing.T, store string) string {
			made(t, store)
			name, schema := role(t), schemaOf(t, store)
			exec(t, server, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT ON ALL TABLES IN SCHEMA %s TO %s", schema, name, schema, name))
			return as(t, store, name)
		}, []string{"lacks INSERT", "GRANT SELECT, INSERT, UPDATE, DELETE"}},
		{"tables of another program", func(t *testing.T, store string) string {
			schema := schemaOf(t, store)
			exec(t, server, "CREATE SCHEMA "+schema+"; CREATE TABLE "+schema+".kine (id int)")
			return store
		}, []string{"another program (kine)", "search_path=SCHEMA"}},
		{"a newer schema", func(t *testing.T, store string) string {
			made(t, store)
			exec(t, server, "UPDATE "+schemaOf(t, store)+".taskctl_schema SET version = 99")
			return store
		}, []string{"version 99", "use a newer taskctl"}},
		{"a damaged schema", func(t *testing.T, store string) string {
			made(t, store)
			exec(t, server, "DELETE FROM "+schemaOf(t, store)+".taskctl_schema")
			return store
		}, []string{"damaged", "restore a backup"}},
		{"synchronous_commit=off in the address", func(t *testing.T, store string) string {
			return with(t, store, func(u *url.URL) {
				query := u.Query()
				query.Set("synchronous_commit", "off")
				u.RawQuery = query.Encode()
			})
		}, []string{"synchronous_commit=off", "lose acknowledged writes"}},
		{"synchronous_commit=off for the role", func(t *testing.T, store string) string {
			name := role(t)
			exec(t, server, "ALTER ROLE "+name+" SET synchronous_commit = off")
			return as(t, store, name)
		}, []string{"synchronous_commit=off", "ALTER ROLE"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := dbserver.Postgres(t)
			dsn := test.dsn(t, store)
			before := contents(t, server, schemaOf(t, store))
			d, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn})
			if err == nil {
				t.Fatalf("it was opened: %v", d.Close())
			}
			checkMessage(t, err, test.want)
			if after := contents(t, server, schemaOf(t, store)); after != before {
				t.Errorf("the database changed from\n%s\nto\n%s", before, after)
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

func schemaOf(t *testing.T, dsn string) string {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return address.Query().Get("search_path")
}

// made makes the tables.
func made(t *testing.T, dsn string) {
	t.Helper()
	d, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// contents tells everything in a schema, by the transactions that wrote it.
func contents(t *testing.T, server, schema string) string {
	t.Helper()
	rows := dbserver.ExecPostgres(t, server, "SELECT relname, xmin FROM pg_class WHERE relnamespace = to_regnamespace('"+schema+"') ORDER BY relname")
	text := fmt.Sprint(rows)
	for _, row := range rows {
		if row[0] == "meta" || row[0] == "taskctl_schema" {
			text += fmt.Sprint(dbserver.ExecPostgres(t, server, "SELECT xmin, * FROM "+schema+"."+row[0]))
		}
	}
	return text
}

// TestUnsafeServer checks settings that only the server's file can have, and
// that they are looked at again when a running store takes over.
func TestUnsafeServer(t *testing.T) {
	server := dbserver.StartPostgres(t)
	d, err := postgres.Open(t.Context(), postgres.Config{DSN: server.DSN, Term: term})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	set := func(setting string) {
		t.Helper()
		dbserver.ExecPostgres(t, server.DSN, "ALTER SYSTEM SET "+setting)
		dbserver.ExecPostgres(t, server.DSN, "SELECT pg_reload_conf()")
		name, value, _ := strings.Cut(setting, " = ")
		if !dbserver.Eventually(10*time.Second, func() bool { return dbserver.ExecPostgres(t, server.DSN, "SHOW "+name)[0][0] == value }) {
			t.Fatalf("%s is not in force", setting)
		}
	}
	for _, test := range []struct{ unsafe, safe, want string }{
		{"fsync = off", "fsync = on", "fsync=off"},
		{"synchronous_commit = off", "synchronous_commit = on", "synchronous_commit=off"},
	} {
		set(test.unsafe)
		_, err := postgres.Open(t.Context(), postgres.Config{DSN: server.DSN})
		if err == nil {
			t.Fatalf("opened with %s", test.unsafe)
		}
		checkMessage(t, err, []string{test.want, "lose acknowledged writes"})
		if _, err := d.Acquire(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("acquired with %s: %v", test.unsafe, err)
		}
		set(test.safe)
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
	dsn := dbserver.Postgres(t)
	open := func() *postgres.Database {
		d, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, Term: time.Minute})
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
