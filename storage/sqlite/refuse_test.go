package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/sqlite"
)

// run executes SQL on a file by the driver alone.
func run(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// made is a file of ours with something in it.
func made(t *testing.T, path string) {
	t.Helper()
	database, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatIsNotOursIsRefusedAndNotTouched(t *testing.T) {
	tests := []struct {
		name string
		make func(path string)
		want string
	}{
		{"text", func(path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("not a database\n"), 100), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a SQLite database"},
		{"a short file", func(path string) {
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a SQLite database"},
		{"another program's database", func(path string) {
			run(t, path, "CREATE TABLE recipes (name TEXT)", "INSERT INTO recipes VALUES ('soup')")
		}, "another program"},
		{"another program's database with tables of our names", func(path string) {
			run(t, path, "CREATE TABLE meta (one INTEGER)", "CREATE TABLE versions (id INTEGER)")
		}, "another program"},
		{"a schema that is newer than the program", func(path string) {
			made(t, path)
			run(t, path, "PRAGMA user_version = 99", "PRAGMA wal_checkpoint(TRUNCATE)")
		}, "use a newer taskctl"},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), fmt.Sprint(i))
			test.make(path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			database, err := sqlite.Open(context.Background(), sqlite.Config{Path: path})
			if err == nil {
				_ = database.Close()
				t.Fatal("it is opened")
			}
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
				t.Errorf("the refusal is %q", err)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file has changed: %v", err)
			}
			if _, err := os.Stat(path + "-wal"); err == nil {
				t.Error("a WAL was made")
			}
		})
	}
}

func TestASecondOpeningOfAFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	database, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		if second, err := sqlite.Open(t.Context(), sqlite.Config{Path: name}); err == nil {
			_ = second.Close()
			t.Errorf("%s is opened twice", name)
		} else if !strings.Contains(err.Error(), backend.ErrOwned.Error()) {
			t.Errorf("the refusal is %q", err)
		}
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	made(t, path)
}

// TestEverySettingThatKeepsCommitsIsOnOnEveryConnection asks SQLite itself.
func TestEverySettingThatKeepsCommitsIsOnOnEveryConnection(t *testing.T) {
	for name, got := range sqlite.SettingsForTest(t, filepath.Join(t.TempDir(), "store.db")) {
		want := map[string]int64{"synchronous": 2, "fullfsync": 1, "checkpoint_fullfsync": 1, "auto_vacuum": 2}
		for setting, value := range want {
			if got[setting] != value {
				t.Errorf("%s is %d on the %s connection, want %d", setting, got[setting], name, value)
			}
		}
	}
}
