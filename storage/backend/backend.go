package backend

import (
	"context"
	"time"
)

// Database is one configured database. Its constructor (one for each kind, in
// its own package) has checked that it can be reached, that it is ours, that
// its settings are safe, and has made or migrated the schema.
type Database interface {
	// Kind is "sqlite", "postgres" or "mysql"; it is a label of metrics.
	Kind() string
	// Acquire makes the caller the owner on new connections. In this order:
	// end older sessions of this process and of former owners as far as the
	// database allows it, wait until the term of another owner has run out
	// (by the database's clock), raise the epoch in a committed transaction,
	// read the state. It replaces the session that it returned before, which
	// the engine has closed or given up by then.
	//
	// It fails with the reason when the database is not reachable, and with
	// an error that wraps ErrOwned when another process has shown that it
	// lives and keeps the ownership.
	Acquire(ctx context.Context) (Session, error)
	// Close releases the database. The engine closes its session first.
	Close() error
}

// Session is a time of ownership: everything between raising the epoch and
// losing it. Apply, Maintain and Defragment are called by one goroutine at a
// time; every other method may be called concurrently with them and with
// itself, and sees every batch whose Apply has returned nil.
//
// A row that cannot be read is an error, never a shorter answer. Callbacks get
// rows whose byte slices they may keep. A callback's error ends the scan and
// is returned as it is; ErrStop ends it without an error.
type Session interface {
	// State is what Acquire found, after it had raised the epoch.
	State() State
	// Limits are the database's own bounds on what Apply takes.
	Limits() Limits

	// Apply stores a batch in one transaction that is durable when Apply
	// returns nil. The database itself compares the epoch and the last ID
	// with the session's and with Batch.AfterID, within the transaction, and
	// fails it where they differ.
	//
	// The error says what is known (see errors.go): a *Rejected is certainly
	// not stored and the session goes on; ErrFenced is certainly not stored
	// and the session is over; after any other error the outcome is unknown
	// and the engine gives the session up and calls Acquire. ctx bounds only
	// the statements before the commit: an implementation must not cancel a
	// COMMIT by it.
	Apply(ctx context.Context, batch *Batch) error

	// Newest calls fn for each key in [from, end), in order of the keys'
	// bytes, with its newest version whose ID is at most upTo; tombstones are
	// included. A nil end means no upper bound. Values are not read. The
	// engine loads its index with it, and answers lists at old revisions.
	Newest(ctx context.Context, from, end []byte, upTo int64, fn func(*Version) error) error
	// Scan calls fn for the versions with after < ID <= upTo in order of IDs.
	// Values are read only if asked for. It is how watches catch up and how
	// compaction finds what is superseded.
	Scan(ctx context.Context, after, upTo int64, values bool, fn func(*Version) error) error
	// Next returns ID and revision of the first version whose ID is at least
	// id, and false where there is none. Revisions never decrease with IDs,
	// so that the engine finds the ID of a revision by bisection.
	Next(ctx context.Context, id int64) (foundID, revision int64, found bool, err error)
	// Values reads the values of versions: fn is called once for each of the
	// ids, in any order, with its position in ids. An id that is not stored
	// fails the call with a *Missing.
	Values(ctx context.Context, ids []int64, fn func(position int, value []byte)) error
	// Leases calls fn for every stored lease.
	Leases(ctx context.Context, fn func(Lease) error) error

	// Term is how long ownership lasts beyond the start of a call of Acquire
	// or Renew that succeeded. Zero means that ownership needs no renewal (a
	// local file under an operating-system lock).
	Term() time.Duration
	// Renew extends ownership by Term. It fails with ErrFenced when another
	// owner has raised the epoch.
	Renew(ctx context.Context) error

	// Size reports the database's size in bytes.
	Size(ctx context.Context) (Size, error)
	// Maintain does a small piece (at most a few milliseconds) of the
	// housekeeping that may not run beside Apply, such as giving freed pages
	// back, and reports whether more is waiting. The engine calls it when the
	// queue of writes is empty, and now and then when it never is.
	Maintain(ctx context.Context) (more bool, err error)
	// Defragment gives all unused space back, where the database can. Writes
	// wait for it.
	Defragment(ctx context.Context) error

	// Close ends the session's connections. It does not wait for statements
	// whose answers are lost.
	Close() error
}
