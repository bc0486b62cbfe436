package backend

import (
	"errors"
	"fmt"
)

// ErrFenced says that another owner has raised the epoch, or that the database
// does not hold what the session last stored. Nothing was stored.
var ErrFenced = errors.New("another process has taken over the database")

// ErrOwned says that another living process owns the database.
var ErrOwned = errors.New("the database is in use by another process")

// ErrUnreachable says that a database does not answer, for a reason that may
// pass by itself: its server is down, or the way to it is.
var ErrUnreachable = errors.New("the database cannot be reached")

// ErrStop ends a scan early without an error.
var ErrStop = errors.New("stop")

// Rejected says that the database refused a batch and rolled it back whole,
// and that the session goes on: a value is too long for a column, a constraint
// failed, a deadlock was resolved against it, the disk is full.
type Rejected struct {
	Err error
	// Retry says that the same batch may succeed at once (deadlock,
	// serialization failure), so that no request is to blame.
	Retry bool
}

func (r *Rejected) Error() string { return r.Err.Error() }
func (r *Rejected) Unwrap() error { return r.Err }

// Missing says that a version which was asked for by ID is not stored.
type Missing struct{ ID int64 }

func (m *Missing) Error() string { return fmt.Sprintf("version %d is not stored", m.ID) }
