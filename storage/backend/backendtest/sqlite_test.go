package backendtest_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/sqlite"
)

func TestSQLite(t *testing.T) {
	backendtest.Run(t, backendtest.Implementation{
		Exclusive: true,
		New: func(t *testing.T) func(context.Context) (backend.Database, error) {
			path := filepath.Join(t.TempDir(), "store.db")
			return func(ctx context.Context) (backend.Database, error) {
				return sqlite.Open(ctx, sqlite.Config{Path: path})
			}
		},
	})
}
