package postgres_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/postgres"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

// TestHostileDefaults runs the conformance tests with every default changed
// that could change a result.
func TestHostileDefaults(t *testing.T) {
	dsn := dbserver.NewPostgresDatabase(t, dbserver.PostgresServer(t))
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{
		"default_transaction_isolation = 'serializable'",
		"default_transaction_read_only = on",
		"default_transaction_deferrable = on",
		"bytea_output = 'escape'",
		"standard_conforming_strings = off",
		"backslash_quote = on",
		"timezone = 'Asia/Kathmandu'",
		"datestyle = 'German'",
		"intervalstyle = 'sql_standard'",
		"extra_float_digits = -10",
		"search_path = 'pg_temp'",
		"row_security = off",
		"array_nulls = off",
		"enable_indexscan = off",
		"enable_indexonlyscan = off",
		"client_min_messages = 'debug1'",
		"idle_in_transaction_session_timeout = '1s'",
	} {
		dbserver.ExecPostgres(t, dbserver.PostgresServer(t), "ALTER DATABASE "+address.Path[1:]+" SET "+setting)
	}
	backendtest.Run(t, backendtest.Implementation{New: func(t *testing.T) func(context.Context) (backend.Database, error) {
		dsn := dbserver.NewPostgresSchema(t, dsn)
		return func(ctx context.Context) (backend.Database, error) {
			return postgres.Open(ctx, postgres.Config{DSN: dsn, Term: term})
		}
	}})
}
