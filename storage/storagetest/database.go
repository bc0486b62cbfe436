package storagetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
)

// Variables that name the database servers to test with, by DSN.
const (
	PostgresVariable = "TASKCTL_TEST_POSTGRES"
	MySQLVariable    = "TASKCTL_TEST_MYSQL"
)

// ServerDSN is the DSN that a variable has. Without one the test is skipped,
// and fails in CI.
func ServerDSN(tb testing.TB, variable string) string {
	tb.Helper()
	dsn := os.Getenv(variable)
	switch {
	case dsn != "":
	case os.Getenv("CI") == "true":
		tb.Fatalf("%s is not set: CI must have this server", variable)
	default:
		tb.Skipf("%s is not set: no server to test with", variable)
	}
	return dsn
}

// EmptyDatabase makes a database with a name of its own on the server of a
// postgres:// or mysql:// DSN, drops it when the test ends, and returns its DSN.
func EmptyDatabase(tb testing.TB, dsn string) string {
	tb.Helper()
	random := make([]byte, 6)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	name := "taskctl_test_" + hex.EncodeToString(random)
	if rest, ok := strings.CutPrefix(dsn, "mysql://"); ok {
		return "mysql://" + emptyMySQL(tb, rest, name)
	}
	return emptyPostgres(tb, dsn, name)
}

func emptyPostgres(tb testing.TB, dsn, name string) string {
	tb.Helper()
	run := func(statement string) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			tb.Fatalf("connect to PostgreSQL: %v", err)
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, statement); err != nil {
			tb.Fatalf("%s: %v", statement, err)
		}
	}
	run("CREATE DATABASE " + name)
	tb.Cleanup(func() { run("DROP DATABASE " + name + " WITH (FORCE)") })
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatalf("the PostgreSQL DSN is no URL: %v", err)
	}
	u.Path = "/" + name
	return u.String()
}

func emptyMySQL(tb testing.TB, dsn, name string) string {
	tb.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		tb.Fatalf("the MySQL DSN is not of the driver's form: %v", err)
	}
	config.DBName = ""
	run := func(statement string) {
		db, err := sql.Open("mysql", config.FormatDSN())
		if err != nil {
			tb.Fatalf("connect to MySQL: %v", err)
		}
		defer func() { _ = db.Close() }()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := db.ExecContext(ctx, statement); err != nil {
			tb.Fatalf("%s: %v", statement, err)
		}
	}
	run("CREATE DATABASE " + name)
	tb.Cleanup(func() { run("DROP DATABASE " + name) })
	changed := config.Clone()
	changed.DBName = name
	return changed.FormatDSN()
}
