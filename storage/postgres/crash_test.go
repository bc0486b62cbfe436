package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/postgres"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

func opener(dsn string) func(context.Context) (backend.Database, error) {
	return func(ctx context.Context) (backend.Database, error) {
		return postgres.Open(ctx, postgres.Config{DSN: dsn, Term: term})
	}
}

func TestServerKilled(t *testing.T) {
	server := dbserver.StartPostgres(t)
	backendtest.RunCrashes(t, server, opener(server.DSN))
}

func TestReadsSurviveRestart(t *testing.T) {
	server := dbserver.StartPostgres(t)
	backendtest.ReadsSurvive(t, server, opener(server.DSN))
}

// TestCanceledWaitForStandby checks that a commit which the server calls done,
// with only a warning that it may not be on the standby, counts as unknown.
func TestCanceledWaitForStandby(t *testing.T) {
	server := dbserver.StartPostgres(t)
	query := func(sql string) [][]string { t.Helper(); return dbserver.ExecPostgres(t, server.DSN, sql) }
	standby := func(name string) {
		t.Helper()
		query("ALTER SYSTEM SET synchronous_standby_names = '" + name + "'")
		query("SELECT pg_reload_conf()")
		if !dbserver.Eventually(10*time.Second, func() bool { return query("SHOW synchronous_standby_names")[0][0] == name }) {
			t.Fatal("the setting is not in force")
		}
	}
	d, err := opener(server.DSN)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	session, err := d.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	standby("nobody")
	result := make(chan error, 1)
	batch := &backend.Batch{LastRev: 2, Versions: []backend.Version{{ID: 1, Rev: 2, Create: 2, Version: 1, Key: []byte("a"), Value: []byte("1")}}}
	go func() { result <- session.Apply(context.Background(), batch) }()
	waiting := func() bool {
		return query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'taskctl'")[0][0] == "1"
	}
	if !dbserver.Eventually(20*time.Second, waiting) {
		t.Fatal("the commit does not wait for the standby")
	}
	query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	err = <-result
	var rejected *backend.Rejected
	if err == nil || errors.As(err, &rejected) || errors.Is(err, backend.ErrFenced) {
		t.Fatalf("the outcome should be unknown, not: %v", err)
	}
	t.Log(err)
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	standby("")
	session, err = d.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if last := session.State().LastID; last != 1 {
		t.Errorf("the batch is not there: last ID %d", last)
	}
}

func TestEngineSurvivesCrashes(t *testing.T) {
	server := dbserver.StartPostgres(t)
	backendtest.RunEngine(t, server, opener(server.DSN))
}
