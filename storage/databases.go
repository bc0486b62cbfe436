package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/routing"
)

// Databases are the databases of a store that does not run: owned, and with
// nothing that reads or writes them but the caller.
type Databases struct {
	Backends []OpenBackend
	Router   *routing.Router
	// Reserved is a revision that was reserved for the store, 0 if none was.
	Reserved int64

	config Config
	specs  []Backend
}

// OpenBackend is one of them.
type OpenBackend struct {
	Name, Kind string
	Session    backend.Session
	// Embedded says that it is the etcd in this process, which Renew makes
	// anew.
	Embedded bool

	database backend.Database
}

// OpenDatabases opens and acquires all databases of a configuration. Unlike
// Open it needs every one of them. The caller closes them.
func OpenDatabases(ctx context.Context, config Config) (*Databases, error) {
	topology, err := config.topology()
	if err != nil {
		return nil, err
	}
	router, err := topology.Router()
	if err != nil {
		return nil, err
	}
	d := &Databases{Router: router, config: config, specs: topology.Backends}
	if d.Reserved, err = mvcc.CeilingFile(filepath.Join(config.DataDir, ceilingFile)).Load(); err != nil {
		return nil, err
	}
	for _, b := range topology.Backends {
		opened, err := d.open(ctx, b)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.Backends = append(d.Backends, opened)
	}
	return d, nil
}

func (d *Databases) open(ctx context.Context, b Backend) (OpenBackend, error) {
	database, err := openBackend(ctx, d.config, b, false)
	if err != nil {
		return OpenBackend{}, fmt.Errorf("storage backend %q: %w", b.Name, err)
	}
	session, err := database.Acquire(ctx)
	if err != nil {
		return OpenBackend{}, errors.Join(fmt.Errorf("storage backend %q: %w", b.Name, err), database.Close())
	}
	return OpenBackend{Name: b.Name, Kind: database.Kind(), Session: session, Embedded: isEmbedded(b), database: database}, nil
}

// Renew deletes the embedded etcd and makes a new one in its place. The session
// of before is over.
func (d *Databases) Renew(ctx context.Context, index int) (backend.Session, error) {
	old := &d.Backends[index]
	if !old.Embedded {
		return nil, fmt.Errorf("the backend %q is no embedded etcd", old.Name)
	}
	if err := old.close(); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(embeddedDir(d.config)); err != nil {
		return nil, err
	}
	opened, err := d.open(ctx, d.specs[index])
	if err != nil {
		return nil, err
	}
	*old = opened
	return opened.Session, nil
}

// close ends the session and gives the database back; it may be called twice.
func (b *OpenBackend) close() error {
	if b.database == nil {
		return nil
	}
	err := errors.Join(b.Session.Close(), b.database.Close())
	b.database = nil
	return err
}

// Close gives the databases back.
func (d *Databases) Close() error {
	var errs []error
	for i := range d.Backends {
		errs = append(errs, d.Backends[i].close())
	}
	return errors.Join(errs...)
}
