// Package sqlstore is what the backends that talk to a database server
// (postgres, mysql) share: ownership by a term, a bounded pool of reading
// connections, and pages that keep no snapshot of the database open for long.
// It knows no SQL; the statements are the backends' own.
package sqlstore
