package sqlite

import (
	"database/sql/driver"
	"testing"
)

// SettingsForTest opens a file and returns the settings of each kind of
// connection that a session has.
func SettingsForTest(t *testing.T, path string) map[string]map[string]int64 {
	t.Helper()
	database, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := database.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*session)
	r := <-s.idle
	settings := map[string]map[string]int64{}
	for name, c := range map[string]*conn{"writing": s.writer, "reading": r.conn, "checkpointing": s.checkpoint.conn} {
		settings[name] = map[string]int64{}
		for _, setting := range []string{"synchronous", "fullfsync", "checkpoint_fullfsync", "auto_vacuum"} {
			row, err := c.integers("PRAGMA " + setting)
			if err != nil {
				t.Fatal(err)
			}
			settings[name][setting] = row[0]
		}
		if mode := textOf(t, c, "PRAGMA journal_mode"); mode != "wal" {
			t.Errorf("the journal of the %s connection is %s", name, mode)
		}
	}
	s.idle <- r
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := database.Close(); err != nil {
		t.Error(err)
	}
	return settings
}

func textOf(t *testing.T, c *conn, query string) (text string) {
	t.Helper()
	s, err := c.prepare(query)
	if err != nil {
		t.Fatal(err)
	}
	defer c.forget(s)
	err = s.each(func(row []driver.Value) (bool, error) {
		switch value := row[0].(type) {
		case []byte:
			text = string(value)
		case string:
			text = value
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
