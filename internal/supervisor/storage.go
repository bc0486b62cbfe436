package supervisor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/logging"
	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/etcd"
	"github.com/taskctl-dev/taskctl/storage/serve"
)

// DefaultStorage is the --storage SPEC of an appliance that says nothing else.
const DefaultStorage = "etcd"

// progressNotifyInterval is how often the store tells kube-apiserver's watches
// their progress: the interval with which kube-apiserver's own setup guide runs
// etcd (--experimental-watch-progress-notify-interval=5s).
const progressNotifyInterval = 5 * time.Second

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
	case "":
		return nil
	case "etcd", "sqlite":
		if spec == backend {
			return nil
		}
	case "postgres", "postgresql", "mysql":
	case "https", "http":
		return fmt.Errorf("this build of taskctl does not use an existing etcd yet: use etcd (the embedded one), sqlite, postgres://… or mysql://…")
	default:
		return fmt.Errorf("the storage %q is not known: use etcd, sqlite, sqlite://FILE, postgres://USER@HOST/DATABASE or mysql://USER@tcp(HOST:3306)/DATABASE", backend)
	}
	if err := config.CheckEndpoint(spec); err != nil {
		return fmt.Errorf("the storage can't be used: %w", err)
	}
	return nil
}

// backendOf is the part of a SPEC that names the kind of database. What
// follows it may hold a password.
func backendOf(spec string) string {
	backend, _, _ := strings.Cut(spec, ":")
	return backend
}

// newStore makes the store of a SPEC that CheckStorage accepted.
func newStore(options Options, folder *datadir.Folder, logs *logging.Logs) store {
	if kind := backendOf(options.Storage); kind == "" || kind == "etcd" {
		return &etcd.Server{Dir: folder.Etcd(), Socket: folder.EtcdSocket(), Log: logs.Writer(Storage)}
	}
	return &serve.Server{
		Store:                  storage.Config{Spec: options.Storage, Password: options.StoragePassword, DataDir: folder.Path},
		Listen:                 []string{"unix://" + folder.EtcdSocket()},
		ProgressNotifyInterval: progressNotifyInterval,
		Logger:                 logs.Slog(Storage),
	}
}
