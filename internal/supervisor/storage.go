package supervisor

import (
	"context"
	"fmt"
	"strings"

	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/logging"
	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/etcd"
)

// DefaultStorage is the --storage SPEC of an appliance that says nothing else.
const DefaultStorage = "etcd"

// store is what the supervisor needs of a store: a component that, while it
// runs, answers at an endpoint.
type store interface {
	Run(ctx context.Context, ready func()) error
	Endpoint() storage.Endpoint
}

// CheckStorage refuses a --storage SPEC that this build cannot serve. The
// error holds no password.
func CheckStorage(spec string) error {
	switch backend := backendOf(spec); backend {
	case "", DefaultStorage:
		return nil
	case "sqlite", "postgres", "postgresql", "mysql", "https", "http":
		return fmt.Errorf("this build of taskctl stores in the embedded etcd only: --storage %s is not in it yet; leave --storage out", backend)
	default:
		return fmt.Errorf("the storage %q is not known: use etcd", backend)
	}
}

// backendOf is the part of a SPEC that names the kind of database. What
// follows it may hold a password.
func backendOf(spec string) string {
	backend, _, _ := strings.Cut(spec, ":")
	return backend
}

// newStore makes the store of a SPEC that CheckStorage accepted.
func newStore(folder *datadir.Folder, logs *logging.Logs) store {
	return &etcd.Server{Dir: folder.Etcd(), Socket: folder.EtcdSocket(), Log: logs.Writer(Storage)}
}
