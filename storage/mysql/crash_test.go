package mysql_test

import (
	"context"
	"testing"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/mysql"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

func opener(dsn string) func(context.Context) (backend.Database, error) {
	return func(ctx context.Context) (backend.Database, error) {
		return mysql.Open(ctx, mysql.Config{DSN: dsn, Term: term})
	}
}

func TestServerKilled(t *testing.T) {
	server := dbserver.StartMariaDB(t)
	backendtest.RunCrashes(t, server, opener(server.DSN))
}

func TestReadsSurviveRestart(t *testing.T) {
	server := dbserver.StartMariaDB(t)
	backendtest.ReadsSurvive(t, server, opener(server.DSN))
}

// TestHostileDefaults runs the conformance tests on a server with every default
// changed that could change a result, and with a packet so small that batches
// are cut.
func TestHostileDefaults(t *testing.T) {
	server := dbserver.StartMariaDB(t,
		"--transaction-isolation=READ-UNCOMMITTED",
		"--autocommit=0",
		"--completion-type=CHAIN",
		"--sql-mode=ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,IGNORE_SPACE,PAD_CHAR_TO_FULL_LENGTH",
		"--collation-server=utf8mb4_unicode_ci",
		"--character-set-server=utf8mb4",
		"--skip-character-set-client-handshake",
		"--init-connect=SET NAMES big5",
		"--default-time-zone=+05:45",
		"--default-storage-engine=Aria",
		"--innodb-default-row-format=redundant",
		"--innodb-rollback-on-timeout=0",
		"--max-allowed-packet=5M",
		"--log-bin=log", "--binlog-format=STATEMENT", "--sync-binlog=1", "--server-id=1",
		"--lower-case-table-names=1",
		"--old-mode=",
	)
	backendtest.Run(t, backendtest.Implementation{New: func(t *testing.T) func(context.Context) (backend.Database, error) {
		return opener(dbserver.NewMySQLDatabase(t, server.DSN))
	}})
}

func TestEngineSurvivesCrashes(t *testing.T) {
	server := dbserver.StartMariaDB(t)
	backendtest.RunEngine(t, server, opener(server.DSN))
}
