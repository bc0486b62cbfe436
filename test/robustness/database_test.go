package robustness

import (
	"context"
	"fmt"
	"math/rand"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// emptyDatabase makes a database on a PostgreSQL server, drops it when the
// test ends, and returns its DSN.
func emptyDatabase(t *testing.T, dsn string) string {
	t.Helper()
	name := fmt.Sprintf("taskctl_robustness_%d_%d", time.Now().UnixNano(), rand.Intn(1000))
	run := func(statement string) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatalf("connect to PostgreSQL: %v", err)
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	run("CREATE DATABASE " + name)
	t.Cleanup(func() { run("DROP DATABASE " + name + " WITH (FORCE)") })
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("the DSN is no URL: %v", err)
	}
	u.Path = "/" + name
	return u.String()
}
