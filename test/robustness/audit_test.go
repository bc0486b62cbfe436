package robustness

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "github.com/mattn/go-sqlite3" // the driver of the audit's own connection
)

// audit is a table in the tested database that triggers fill, in the
// transactions that it tells of and so in the order of their commits.
type audit interface {
	install(ctx context.Context) error
	rows(ctx context.Context) ([]auditRow, error)
}

// auditRow is one of these: "batch", the begin of a transaction; "version", a
// key that was put or deleted at revision number; "floor", a compaction at
// revision number (meta keeps one more than that); "grant" and "revoke", the lease number stored and removed.
type auditRow struct {
	kind       string
	number     int64
	deleted    bool
	lease      int64
	key, value string
}

const auditColumns = "kind, number, deleted, lease, key, value"

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
			seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, number INTEGER NOT NULL,
			deleted INTEGER NOT NULL DEFAULT 0, lease INTEGER NOT NULL DEFAULT 0, key BLOB, value BLOB
		);
		CREATE TRIGGER audit_versions AFTER INSERT ON versions BEGIN
			INSERT INTO audit (kind, number, deleted, lease, key, value)
			VALUES ('version', NEW.rev, NEW.deleted, NEW.lease, NEW.key, NEW.value);
		END;
		CREATE TRIGGER audit_batch AFTER UPDATE ON meta BEGIN
			INSERT INTO audit (kind, number) VALUES ('batch', NEW.last_rev);
			INSERT INTO audit (kind, number) SELECT 'floor', NEW.floor - 1 WHERE NEW.floor <> OLD.floor;
		END;
		CREATE TRIGGER audit_grant AFTER INSERT ON leases BEGIN
			INSERT INTO audit (kind, number) VALUES ('grant', NEW.id);
		END;
		CREATE TRIGGER audit_revoke AFTER DELETE ON leases BEGIN
			INSERT INTO audit (kind, number) VALUES ('revoke', OLD.id);
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
		if err := rows.Scan(&row.kind, &row.number, &deleted, &row.lease, &key, &value); err != nil {
			return nil, err
		}
		row.deleted, row.key, row.value = deleted != 0, string(key), string(value)
		all = append(all, row)
	}
	return all, rows.Err()
}

// postgresAudit is that of a PostgreSQL database; the store's own tables are in
// the schema taskctl, where it suffers no others.
type postgresAudit struct{ dsn string }

func (a postgresAudit) install(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, a.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, strings.ReplaceAll(`
		CREATE TABLE audit (
			seq BIGSERIAL PRIMARY KEY, kind TEXT NOT NULL, number BIGINT NOT NULL,
			deleted BOOLEAN NOT NULL DEFAULT false, lease BIGINT NOT NULL DEFAULT 0, key BYTEA, value BYTEA
		);
		CREATE FUNCTION audit_version() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
			INSERT INTO public.audit (kind, number, deleted, lease, key, value)
			VALUES ('version', NEW.rev, NEW.deleted::int <> 0, NEW.lease, NEW.key, NEW.value);
			RETURN NULL;
		END $body$;
		CREATE FUNCTION audit_batch() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
			INSERT INTO public.audit (kind, number) VALUES ('batch', NEW.last_rev);
			INSERT INTO public.audit (kind, number) SELECT 'floor', NEW.floor - 1 WHERE NEW.floor <> OLD.floor;
			RETURN NULL;
		END $body$;
		CREATE FUNCTION audit_grant() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
			INSERT INTO public.audit (kind, number) VALUES ('grant', NEW.id);
			RETURN NULL;
		END $body$;
		CREATE FUNCTION audit_revoke() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
			INSERT INTO public.audit (kind, number) VALUES ('revoke', OLD.id);
			RETURN NULL;
		END $body$;
		CREATE TRIGGER audit_versions AFTER INSERT ON taskctl.versions FOR EACH ROW EXECUTE FUNCTION audit_version();
		CREATE TRIGGER audit_batch AFTER UPDATE ON taskctl.meta FOR EACH ROW EXECUTE FUNCTION audit_batch();
		CREATE TRIGGER audit_grant AFTER INSERT ON taskctl.leases FOR EACH ROW EXECUTE FUNCTION audit_grant();
		CREATE TRIGGER audit_revoke AFTER DELETE ON taskctl.leases FOR EACH ROW EXECUTE FUNCTION audit_revoke();`, "\t", " "))
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
		err = r.Scan(&row.kind, &row.number, &row.deleted, &row.lease, &key, &value)
		row.key, row.value = string(key), string(value)
		return row, err
	})
}
