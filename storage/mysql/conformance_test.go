package mysql_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/mysql"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// term is short, so that tests which wait it out are quick.
const term = time.Second

func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Implementation{New: func(t *testing.T) func(context.Context) (backend.Database, error) {
		dsn := dbserver.MySQL(t)
		return func(ctx context.Context) (backend.Database, error) {
			return mysql.Open(ctx, mysql.Config{DSN: dsn, Term: term})
		}
	}})
}
