package dbserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// PostgresServer returns the DSN of the shared PostgreSQL server
// (TASKCTL_TEST_POSTGRES).
func PostgresServer(t testing.TB) string {
	t.Helper()
	shared := os.Getenv("TASKCTL_TEST_POSTGRES")
	if shared == "" {
		missing(t, "a PostgreSQL server (TASKCTL_TEST_POSTGRES; test/servers/start starts one)")
	}
	return shared
}

// Postgres returns a DSN for a store of the test's own on the shared server: it
// names a schema that does not exist yet and that goes with the test.
func Postgres(t testing.TB) string {
	t.Helper()
	return NewPostgresSchema(t, PostgresServer(t))
}

// NewPostgresSchema returns the DSN with the name of a schema that does not
// exist yet and that goes with the test.
func NewPostgresSchema(t testing.TB, dsn string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() {
		ExecPostgres(t, dsn, "BEGIN READ WRITE; DROP SCHEMA IF EXISTS "+name+" CASCADE; COMMIT")
	})
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("search_path", name)
	address.RawQuery = query.Encode()
	return address.String()
}

// NewPostgresDatabase makes a database on the server of dsn and returns its DSN.
func NewPostgresDatabase(t testing.TB, dsn string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:12])
	ExecPostgres(t, dsn, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		c, err := pgconn.Connect(context.Background(), dsn)
		if err != nil {
			return // the server went before its database
		}
		defer c.Close(context.Background())
		_, _ = c.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)").ReadAll()
	})
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = "/" + name
	return address.String()
}

// ExecPostgres runs SQL on a server and returns the last result's rows.
func ExecPostgres(t testing.TB, dsn, sql string) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var rows [][]string
	for _, row := range results[len(results)-1].Rows {
		columns := make([]string, len(row))
		for i := range row {
			columns[i] = string(row[i])
		}
		rows = append(rows, columns)
	}
	return rows
}

// StartPostgres starts a PostgreSQL server of the test's own. settings are
// name=value pairs of postgresql.conf.
func StartPostgres(t testing.TB, settings ...string) *Server {
	t.Helper()
	bin := postgresBin()
	if bin == "" {
		missing(t, "PostgreSQL (initdb and postgres)")
	}
	s, dir, as := newServer(t, "postgres")
	data := filepath.Join(dir, "data")
	output(t, as(exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "taskctl", "--auth=trust", "--no-sync", "--locale=C.UTF-8", "-E", "UTF8")))
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	s.DSN = fmt.Sprintf("postgres://taskctl@%s/postgres?sslmode=disable", s.Address)
	s.command = func() *exec.Cmd {
		args := []string{"-D", data, "-p", port, "-k", dir, "-c", "listen_addresses=127.0.0.1"}
		for _, setting := range settings {
			args = append(args, "-c", setting)
		}
		return as(exec.Command(filepath.Join(bin, "postgres"), args...))
	}
	s.answers = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c, err := pgconn.Connect(ctx, s.DSN)
		if err != nil {
			return err
		}
		return c.Close(ctx)
	}
	s.Start()
	return s
}

// postgresBin is the folder of the newest installed server's programs.
func postgresBin() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
}
