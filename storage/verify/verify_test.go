package verify_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/sqlite"
	"github.com/taskctl-dev/taskctl/storage/verify"
)

// odd routes keys that begin with b to the second backend.
type odd struct{}

func (odd) Route(key string) int {
	if strings.HasPrefix(key, "b") {
		return 1
	}
	return 0
}
func (odd) Reads(string) []int { return []int{0, 1} }
func (odd) Overlap(from, end string) []int {
	if strings.HasPrefix(from, "a") && strings.HasPrefix(end, "a") {
		return []int{0}
	}
	return []int{0, 1}
}

func databases(t *testing.T, dir string) []*sqlite.Database {
	t.Helper()
	var opened []*sqlite.Database
	for _, name := range []string{"main", "bulk"} {
		database, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, name+".db")})
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, database)
	}
	return opened
}

// fill makes a store with a history, half of it compacted.
func fill(t *testing.T, dir string) {
	t.Helper()
	opened := databases(t, dir)
	store, err := mvcc.Open(t.Context(), mvcc.Options{
		Backends: []mvcc.Backend{{Name: "main", Database: opened[0]}, {Name: "bulk", Database: opened[1]}}, Router: odd{},
	})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key, value string, lease int64) int64 {
		response, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{
			{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return response.Header.Revision
	}
	if _, err := store.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{ID: 7, TTL: 1000}); err != nil {
		t.Fatal(err)
	}
	var middle int64
	for i := range 40 {
		put(fmt.Sprintf("a%d", i%7), fmt.Sprint(i), 0)
		put(fmt.Sprintf("b%d", i%7), fmt.Sprint(i), 7)
		if i == 20 {
			middle = put("a-middle", "", 0)
		}
	}
	if _, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("a0"), RangeEnd: []byte("a3")}}},
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("a-last"), Value: []byte("x")}}},
	}}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Compact(t.Context(), &pb.CompactionRequest{Revision: middle, Physical: true}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// check verifies the databases of a folder.
func check(t *testing.T, dir string) verify.Report {
	t.Helper()
	store := verify.Store{Route: odd{}.Route}
	for i, database := range databases(t, dir) {
		session, err := database.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer database.Close()
		defer session.Close()
		state := session.State()
		if i == 0 {
			store.Floor = state.Floor - 1
		}
		store.Backends = append(store.Backends, verify.Backend{
			Name: []string{"main", "bulk"}[i], Session: session, LastID: state.LastID, LastRev: state.LastRev, Mark: state.Floor,
		})
	}
	report, err := verify.Run(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestAStoreOfTheEngineIsClean(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	report := check(t, dir)
	if !report.Clean() {
		t.Errorf("%+v", report.Breaches)
	}
	if len(report.Backends) != 2 || report.Backends[0].Keys != 6 || report.Backends[1].Keys != 7 || report.Backends[1].Leases != 1 {
		t.Errorf("%+v", report.Backends)
	}
}

func TestEveryBreachIsReported(t *testing.T) {
	filled := t.TempDir()
	fill(t, filled)
	const newest = "(SELECT max(id) FROM versions)"
	for name, test := range map[string]struct{ database, statement, rule, message string }{
		"a revision that goes back":     {"main", "UPDATE versions SET rev = 3 WHERE id = " + newest, "order", "has revision 3, after one with"},
		"a position that repeats":       {"main", "UPDATE versions SET sub = 0 WHERE id = " + newest, "order", "has position 0 in revision"},
		"a key twice in a revision":     {"main", "UPDATE versions SET key = (SELECT key FROM versions WHERE id = " + newest + " - 1) WHERE id = " + newest, "order", "it changed twice at revision"},
		"a revision above the newest":   {"main", "UPDATE meta SET last_rev = 50", "meta", "above the newest one that the backend says it holds, 50"},
		"a newest version that is gone": {"main", "UPDATE meta SET last_id = last_id + 1", "meta", "its newest version should be"},
		"a floor above everything":      {"main", "UPDATE meta SET floor = 1000", "meta", "everything below revision 999 is compacted"},
		"a key of another backend":      {"bulk", "UPDATE versions SET key = CAST('z' AS BLOB) WHERE key = CAST('b1' AS BLOB)", "route", `its route leads to the backend "main"`},
		"a key in two backends":         {"bulk", "UPDATE versions SET key = CAST('a5' AS BLOB) WHERE key = CAST('b1' AS BLOB)", "twice", `and in the backend "main" at`},
		"a revision given twice":        {"bulk", "UPDATE versions SET rev = rev - 1 WHERE id = " + newest, "order", "was given to a write here and to one of the backend"},
		"a creation in the future":      {"bulk", "UPDATE versions SET create_rev = 1000 WHERE id = " + newest, "versions", "it was created at a later one, 1000"},
		"a version of none":             {"bulk", "UPDATE versions SET version = 0 WHERE id = " + newest, "versions", "its version is 0"},
		"a version that is left out":    {"bulk", "UPDATE versions SET version = version + 1 WHERE id = " + newest, "versions", "follows created at"},
		"a predecessor that is gone":    {"bulk", "DELETE FROM versions WHERE id = " + newest + " - 7", "versions", "and the one before is"},
		"versions that are gone":        {"bulk", "DELETE FROM versions WHERE id = " + newest + " - 2", "versions", "are gone, and no compaction has come so far"},
		"a lease that is not there":     {"bulk", "UPDATE versions SET lease = 9 WHERE id = " + newest, "lease", "it is under the lease 9, which is not there"},
		"a lease of two lengths":        {"bulk", "UPDATE leases SET ttl = 5", "lease", "was granted 5 s here and 1000 s elsewhere"},
		"a deletion with a value":       {"main", "UPDATE versions SET version = 3 WHERE deleted = 1", "versions", "has a version or a value"},
		"a row that cannot be read":     {"main", "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'rev        INTEGER', 'rev        TEXT') WHERE name = 'versions'; PRAGMA writable_schema = RESET; UPDATE versions SET rev = 'many' WHERE id = " + newest, "unreadable", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(filled)); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite3", filepath.Join(dir, test.database+".db"))
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			if _, err := db.Exec(test.statement); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			report := check(t, dir)
			for _, breach := range report.Breaches {
				if breach.Rule == test.rule && breach.Backend == test.database && strings.Contains(breach.Message, test.message) {
					return
				}
			}
			t.Errorf("found %+v", report.Breaches)
		})
	}
}
