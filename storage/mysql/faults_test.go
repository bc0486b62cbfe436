package mysql_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/mysql"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

// TestFence checks that the server itself refuses a batch of an older epoch, on
// a connection that is as good as ever, and that the row is not left locked.
func TestFence(t *testing.T) {
	dsn := dbserver.MySQL(t)
	d, err := opener(dsn)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	session, err := d.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	dbserver.ExecMySQL(t, dsn, "UPDATE meta SET epoch = epoch + 1 WHERE one = 1")
	batch := &backend.Batch{LastRev: 2, Versions: []backend.Version{{ID: 1, Rev: 2, Key: []byte("a"), Value: []byte("1")}}}
	if err := session.Apply(t.Context(), batch); !errors.Is(err, backend.ErrFenced) {
		t.Errorf("a batch of an older epoch: %v", err)
	}
	if err := session.Renew(t.Context()); !errors.Is(err, backend.ErrFenced) {
		t.Errorf("an older epoch renews: %v", err)
	}
	dbserver.ExecMySQL(t, dsn, "UPDATE meta SET epoch = epoch - 1 WHERE one = 1")
	if rows := dbserver.QueryMySQL(t, dsn, "SELECT COUNT(*) FROM versions"); rows != "0" {
		t.Errorf("%s versions are stored", rows)
	}
	if err := session.Apply(t.Context(), batch); err != nil {
		t.Errorf("a batch of the right epoch: %v", err)
	}
}

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
