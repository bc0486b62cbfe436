package dbserver

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MySQLServer returns the DSN of the shared MySQL or MariaDB server
// (TASKCTL_TEST_MYSQL).
func MySQLServer(t testing.TB) string {
	t.Helper()
	shared := os.Getenv("TASKCTL_TEST_MYSQL")
	if shared == "" {
		missing(t, "a MySQL or MariaDB server (TASKCTL_TEST_MYSQL; test/servers/start starts one)")
	}
	return shared
}

// MySQL returns the DSN of a new database on the shared server. The database
// goes with the test.
func MySQL(t testing.TB) string {
	t.Helper()
	return NewMySQLDatabase(t, MySQLServer(t))
}

// NewMySQLDatabase makes a database on the server of dsn and returns its DSN.
func NewMySQLDatabase(t testing.TB, dsn string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:12])
	ExecMySQL(t, dsn, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if db, err := openMySQL(dsn); err == nil {
			defer db.Close()
			_, _ = db.Exec("DROP DATABASE IF EXISTS " + name)
		}
	})
	config, err := mysql.ParseDSN(strings.TrimPrefix(dsn, "mysql://"))
	if err != nil {
		t.Fatal(err)
	}
	config.DBName = name
	return "mysql://" + config.FormatDSN()
}

func openMySQL(dsn string) (*sql.DB, error) {
	config, err := mysql.ParseDSN(strings.TrimPrefix(dsn, "mysql://"))
	if err != nil {
		return nil, err
	}
	config.Logger = &mysql.NopLogger{}
	config.MultiStatements = true
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// ExecMySQL runs SQL on a server.
func ExecMySQL(t testing.TB, dsn, query string) {
	t.Helper()
	db, err := openMySQL(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// QueryMySQL returns the first column of the first row of a query.
func QueryMySQL(t testing.TB, dsn, query string) string {
	t.Helper()
	db, err := openMySQL(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var value string
	if err := db.QueryRow(query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// StartMariaDB starts a MariaDB server of the test's own. options are
// --name=value arguments.
func StartMariaDB(t testing.TB, options ...string) *Server {
	t.Helper()
	for _, program := range []string{"mariadbd", "mariadb-install-db"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, "MariaDB ("+program+")")
		}
	}
	s, dir, as := newServer(t, "mysql")
	data := filepath.Join(dir, "data")
	output(t, as(exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")))
	accounts := filepath.Join(dir, "accounts.sql")
	err := os.WriteFile(accounts, []byte("CREATE DATABASE IF NOT EXISTS taskctl;\nCREATE USER IF NOT EXISTS taskctl@'%' IDENTIFIED BY 'taskctl';\nGRANT ALL ON *.* TO taskctl@'%' WITH GRANT OPTION;\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	s.DSN = fmt.Sprintf("mysql://taskctl:taskctl@tcp(%s)/taskctl", s.Address)
	s.command = func() *exec.Cmd {
		args := []string{"--no-defaults", "--datadir=" + data, "--socket=" + filepath.Join(dir, "mariadb.sock"), "--port=" + port,
			"--bind-address=127.0.0.1", "--init-file=" + accounts, "--skip-name-resolve"}
		return as(exec.Command("mariadbd", append(args, options...)...))
	}
	s.answers = func() error {
		db, err := openMySQL(s.DSN)
		if err != nil {
			return err
		}
		defer db.Close()
		return db.Ping()
	}
	s.Start()
	return s
}
