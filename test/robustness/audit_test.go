package robustness

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "github.com/mattn/go-sqlite3" // the driver of the audit's own connection
	"go.etcd.io/etcd/tests/v3/robustness/model"
)

// audit is a table in the tested database that triggers fill: each row is a
// version of a key, or a compaction floor, in the order of their commits.
type audit interface {
	install(ctx context.Context) error
	rows(ctx context.Context) ([]auditRow, error)
}

type auditRow struct {
	kind     string // "version" or "floor"
	revision int64
	deleted  bool
	key      string
	value    string
}

const auditColumns = "kind, rev, deleted, key, value"

// sqliteAudit is that of a SQLite file. It is installed while nobody serves it.
type sqliteAudit struct{ dataDir string }

func (a sqliteAudit) open() (*sql.DB, error) {
	return sql.Open("sqlite3", "file:"+filepath.Join(a.dataDir, "store.db")+"?_busy_timeout=10000")
}

func (a sqliteAudit) install(ctx context.Context) error {
	db, err := a.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, `
		CREATE TABLE audit (
			seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, rev INTEGER NOT NULL,
			deleted INTEGER NOT NULL, key BLOB, value BLOB
		);
		CREATE TRIGGER audit_versions AFTER INSERT ON versions BEGIN
			INSERT INTO audit (kind, rev, deleted, key, value)
			VALUES ('version', NEW.rev, NEW.deleted, NEW.key, NEW.value);
		END;
		CREATE TRIGGER audit_floor AFTER UPDATE ON meta WHEN NEW.floor <> OLD.floor BEGIN
			INSERT INTO audit (kind, rev, deleted) VALUES ('floor', NEW.floor, 0);
		END;`)
	return err
}

func (a sqliteAudit) rows(ctx context.Context) ([]auditRow, error) {
	db, err := a.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(ctx, "SELECT "+auditColumns+" FROM audit ORDER BY seq")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []auditRow
	for rows.Next() {
		var row auditRow
		var deleted int64
		var key, value []byte
		if err := rows.Scan(&row.kind, &row.revision, &deleted, &key, &value); err != nil {
			return nil, err
		}
		row.deleted, row.key, row.value = deleted != 0, string(key), string(value)
		all = append(all, row)
	}
	return all, rows.Err()
}

// postgresAudit is that of a PostgreSQL database.
type postgresAudit struct{ dsn string }

func (a postgresAudit) install(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, a.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, strings.ReplaceAll(`
		CREATE TABLE audit (
			seq BIGSERIAL PRIMARY KEY, kind TEXT NOT NULL, rev BIGINT NOT NULL,
			deleted BOOLEAN NOT NULL, key BYTEA, value BYTEA
		);
		CREATE FUNCTION audit_version() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
			INSERT INTO audit (kind, rev, deleted, key, value)
			VALUES ('version', NEW.rev, NEW.deleted::int <> 0, NEW.key, NEW.value);
			RETURN NULL;
		END $body$;
		CREATE FUNCTION audit_floor() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
			INSERT INTO audit (kind, rev, deleted) VALUES ('floor', NEW.floor, false);
			RETURN NULL;
		END $body$;
		CREATE TRIGGER audit_versions AFTER INSERT ON versions FOR EACH ROW EXECUTE FUNCTION audit_version();
		CREATE TRIGGER audit_floor AFTER UPDATE ON meta FOR EACH ROW
			WHEN (NEW.floor IS DISTINCT FROM OLD.floor) EXECUTE FUNCTION audit_floor();`, "\t", " "))
	return err
}

func (a postgresAudit) rows(ctx context.Context) ([]auditRow, error) {
	conn, err := pgx.Connect(ctx, a.dsn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, "SELECT "+auditColumns+" FROM audit ORDER BY seq")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (row auditRow, err error) {
		var key, value []byte
		err = r.Scan(&row.kind, &row.revision, &row.deleted, &key, &value)
		row.key, row.value = string(key), string(value)
		return row, err
	})
}

// persistedRequests turns the audit into what the validators take: the requests
// that changed something, one a revision, without their conditions. Leases are
// left out: what they did is among the deletes. It fails if a revision is
// missing, out of order, or was given twice.
func persistedRequests(rows []auditRow) ([]model.EtcdRequest, error) {
	var requests []model.EtcdRequest
	last := int64(1) // of an empty store
	for _, row := range rows {
		if row.kind == "floor" {
			requests = append(requests, model.EtcdRequest{
				Type: model.Compact, Compact: &model.CompactRequest{Revision: row.revision},
			})
			continue
		}
		op := model.EtcdOperation{Type: model.PutOperation, Put: model.PutOptions{
			Key: row.key, Value: model.ToValueOrHash(row.value),
		}}
		if row.deleted {
			op = model.EtcdOperation{Type: model.DeleteOperation, Delete: model.DeleteOptions{Key: row.key}}
		}
		switch row.revision {
		case last + 1:
			last++
			requests = append(requests, model.EtcdRequest{Type: model.Txn, Txn: &model.TxnRequest{}})
		case last:
		default:
			return nil, fmt.Errorf("revision %d of %q follows %d", row.revision, row.key, last)
		}
		newest := requests[len(requests)-1].Txn
		if newest == nil {
			return nil, fmt.Errorf("revision %d of %q is divided by a compaction", row.revision, row.key)
		}
		for _, other := range newest.OperationsOnSuccess {
			if other.Put.Key == row.key || other.Delete.Key == row.key {
				return nil, fmt.Errorf("revision %d has %q twice", row.revision, row.key)
			}
		}
		newest.OperationsOnSuccess = append(newest.OperationsOnSuccess, op)
	}
	return requests, nil
}
