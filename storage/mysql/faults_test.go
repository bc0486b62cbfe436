package mysql_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/mysql"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

func TestFaults(t *testing.T) {
	backendtest.RunFaults(t, backendtest.Networked{New: func(t *testing.T) backendtest.NetworkedStore {
		dsn := dbserver.MySQL(t)
		_, address, _ := strings.Cut(dsn, "tcp(")
		address, _, _ = strings.Cut(address, ")")
		proxy := dbserver.NewProxy(t, address)
		return backendtest.NetworkedStore{
			Proxy: proxy,
			Open: func(ctx context.Context, commitTimeout time.Duration) (backend.Database, error) {
				return mysql.Open(ctx, mysql.Config{DSN: dsn, Term: term, CommitTimeout: commitTimeout, Dial: proxy.Dial})
			},
			LastID: func() int64 {
				id, err := strconv.ParseInt(dbserver.QueryMySQL(t, dsn, "SELECT last_id FROM meta WHERE one = 1"), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return id
			},
		}
	}})
}
