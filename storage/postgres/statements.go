package postgres

import (
	"fmt"
	"strings"
)

// Object IDs of the types that parameters have (pg_type.dat).
const (
	oidBool       = 16
	oidBytea      = 17
	oidInt8       = 20
	oidText       = 25
	oidBoolArray  = 1000
	oidByteaArray = 1001
	oidInt8Array  = 1016
)

// statement is one of the fixed statements. On direct connections it is
// prepared under its name.
type statement struct {
	name   string
	sql    string
	params []uint32
}

// statements are the texts for one schema.
type statements struct {
	beginWrite, secure, advance, insert, putLeases, deleteLeases, sweep *statement

	beginRead, tune, stored, newest, newestFrom, scan, scanValues, next, values, leases *statement

	commit, renew *statement
}

const versionColumns = "id, rev, sub, prev, create_rev, version, lease, deleted, key"

func newStatements(schema string) *statements {
	prefix := quoteIdentifier(schema) + "."
	define := func(name, sql string, params ...uint32) *statement {
		sql = strings.NewReplacer("META", prefix+"meta", "VERSIONS", prefix+"versions", "LEASES", prefix+"leases").Replace(sql)
		return &statement{name: "taskctl_" + name, sql: sql, params: params}
	}
	const newest = `SELECT DISTINCT ON (key) id, rev, create_rev, version, lease, deleted, key
		FROM VERSIONS WHERE key >= $1 AND id <= $2%s ORDER BY key, id DESC LIMIT $3`
	const scan = "SELECT " + versionColumns + "%s FROM VERSIONS WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3"
	return &statements{
		beginWrite: define("begin_write", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"),
		// Within the transaction only: behind a proxy a session's settings are
		// other people's.
		secure: define("secure", `SELECT set_config('synchronous_commit', $1, true),
			set_config('lock_timeout', '10000', true), set_config('statement_timeout', '0', true)`, oidText),
		// The server itself compares epoch and last ID: a session whose time
		// is over, or whose memory is not what is stored, violates the CHECK
		// on last_rev.
		advance: define("advance", `UPDATE META SET
			last_rev = CASE WHEN epoch = $1 AND last_id = $2 THEN $3::bigint ELSE -1 END,
			last_id  = $4,
			floor    = CASE WHEN $5 > 0 THEN $5 ELSE floor END,
			swept    = CASE WHEN $6 > 0 THEN $6 ELSE swept END
			WHERE one = 1`, oidInt8, oidInt8, oidInt8, oidInt8, oidInt8, oidInt8),
		// Set-returning functions in the select list advance together and
		// row by row; in FROM each would fill a buffer of its own first.
		insert: define("insert", `INSERT INTO VERSIONS (`+versionColumns+`, value)
			SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::bigint[]), unnest($4::bigint[]), unnest($5::bigint[]),
			unnest($6::bigint[]), unnest($7::bigint[]), unnest($8::boolean[]), unnest($9::bytea[]), unnest($10::bytea[])`,
			oidInt8Array, oidInt8Array, oidInt8Array, oidInt8Array, oidInt8Array, oidInt8Array, oidInt8Array, oidBoolArray, oidByteaArray, oidByteaArray),
		putLeases: define("put_leases", `INSERT INTO LEASES (id, ttl, deadline)
			SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::bigint[])
			ON CONFLICT (id) DO UPDATE SET ttl = excluded.ttl, deadline = excluded.deadline`, oidInt8Array, oidInt8Array, oidInt8Array),
		deleteLeases: define("delete_leases", "DELETE FROM LEASES WHERE id = ANY ($1::bigint[])", oidInt8Array),
		sweep:        define("sweep", "DELETE FROM VERSIONS WHERE id = ANY ($1::bigint[])", oidInt8Array),

		beginRead:  define("begin_read", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
		tune:       define("tune", "SELECT "+tuning("set_config('%s', '%s', true)")),
		stored:     define("stored", "SELECT last_id FROM META WHERE one = 1"),
		newest:     define("newest", fmt.Sprintf(newest, " AND key < $4"), oidBytea, oidInt8, oidInt8, oidBytea),
		newestFrom: define("newest_from", fmt.Sprintf(newest, ""), oidBytea, oidInt8, oidInt8),
		scan:       define("scan", fmt.Sprintf(scan, ""), oidInt8, oidInt8, oidInt8),
		scanValues: define("scan_values", fmt.Sprintf(scan, ", value"), oidInt8, oidInt8, oidInt8),
		next:       define("next", "SELECT id, rev FROM VERSIONS WHERE id >= $1 ORDER BY id LIMIT 1", oidInt8),
		values:     define("values", "SELECT id, value FROM VERSIONS WHERE id = ANY ($1::bigint[])", oidInt8Array),
		leases:     define("leases", "SELECT id, ttl, deadline FROM LEASES WHERE id > $1 ORDER BY id LIMIT $2", oidInt8, oidInt8),

		commit: define("commit", "COMMIT"),
		renew:  define("renew", "UPDATE META SET beats = beats + 1 WHERE one = 1 AND epoch = $1", oidInt8),
	}
}

func (s *statements) writing() []*statement {
	return []*statement{s.beginWrite, s.secure, s.advance, s.insert, s.putLeases, s.deleteLeases, s.sweep, s.commit}
}

func (s *statements) reading() []*statement {
	return []*statement{s.beginRead, s.stored, s.newest, s.newestFrom, s.scan, s.scanValues, s.next, s.values, s.leases, s.commit}
}

// tuning lists the planner's settings in the given form. Every query of ours
// is a range of an index in its order; with statistics that are missing or
// old, the planner would now and then rather read and sort a whole table.
func tuning(form string) string {
	settings := [][2]string{
		{"enable_seqscan", "off"}, {"enable_bitmapscan", "off"}, {"enable_sort", "off"},
		{"enable_incremental_sort", "off"}, {"jit", "off"}, {"plan_cache_mode", "force_generic_plan"},
	}
	parts := make([]string, len(settings))
	for i, s := range settings {
		parts[i] = fmt.Sprintf(form, s[0], s[1])
	}
	return strings.Join(parts, ", ")
}
