package storage

import (
	"context"
	"sync"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// lateDatabase is a database that could not be reached when the store was
// opened: it is opened when it is there.
type lateDatabase struct {
	kind string
	open func(context.Context) (backend.Database, error)

	mu     sync.Mutex
	opened backend.Database // nil before
}

// Kind is what the address says.
func (l *lateDatabase) Kind() string { return l.kind }

// Acquire opens the database first if need be.
func (l *lateDatabase) Acquire(ctx context.Context) (backend.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		opened, err := l.open(ctx)
		if err != nil {
			return nil, err
		}
		l.opened = opened
	}
	return l.opened.Acquire(ctx)
}

// Close closes the database, if it was ever opened.
func (l *lateDatabase) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		return nil
	}
	return l.opened.Close()
}
