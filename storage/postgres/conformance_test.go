package postgres_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/postgres"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// term is short, so that tests which wait it out are quick.
const term = time.Second

func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Implementation{New: func(t *testing.T) func(context.Context) (backend.Database, error) {
		dsn := dbserver.Postgres(t)
		return func(ctx context.Context) (backend.Database, error) {
			return postgres.Open(ctx, postgres.Config{DSN: dsn, Term: term})
		}
	}})
}
