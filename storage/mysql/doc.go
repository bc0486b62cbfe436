// Package mysql keeps the store in a MySQL (8.0 or newer) or MariaDB (10.6 or
// newer) database, in InnoDB tables.
//
// The protocol has no pipeline, so a batch is one text of several statements:
// one round trip from START TRANSACTION to COMMIT. The server stops at the
// first statement that fails, so that nothing after it is done; the
// transaction is then rolled back by us, since a lock timeout (error 1205)
// undoes one statement only.
//
// Nothing relies on the state of a connection or on the server's defaults:
// isolation is set for each transaction, COMMIT says that it neither chains
// nor releases, autocommit does not matter, and what fences off an old session
// is a duplicate primary key, which is an error in every sql_mode, where a
// CHECK constraint can be switched off. Reads are explicit transactions too,
// never READ ONLY, which some proxies send to a replica.
//
// Keys are VARBINARY and values LONGBLOB: no collation, no character set, no
// time zone.
package mysql
