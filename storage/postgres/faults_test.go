package postgres_test

import (
	"context"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/postgres"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

func TestFaults(t *testing.T) {
	backendtest.RunFaults(t, backendtest.Networked{New: func(t *testing.T) backendtest.NetworkedStore {
		dsn := dbserver.Postgres(t)
		address, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		proxy := dbserver.NewProxy(t, address.Host)
		return backendtest.NetworkedStore{
			Proxy: proxy,
			Open: func(ctx context.Context, commitTimeout time.Duration) (backend.Database, error) {
				return postgres.Open(ctx, postgres.Config{DSN: dsn, Term: term, CommitTimeout: commitTimeout, Dial: proxy.Dial})
			},
			LastID: func() int64 {
				rows := dbserver.ExecPostgres(t, dbserver.PostgresServer(t), "SELECT last_id FROM "+address.Query().Get("search_path")+".meta")
				id, err := strconv.ParseInt(rows[0][0], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return id
			},
		}
	}})
}
