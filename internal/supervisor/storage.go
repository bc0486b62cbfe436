package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	aggregatorapi "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/logging"
	"github.com/taskctl-dev/taskctl/internal/version"
	operatorapi "github.com/taskctl-dev/taskctl/operator/api/v1"
	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/etcd"
	"github.com/taskctl-dev/taskctl/storage/routing"
	"github.com/taskctl-dev/taskctl/storage/serve"
)

// embeddedEtcd is the SPEC of the embedded etcd.
const embeddedEtcd = "etcd"

// DefaultText names the default storage in a few words.
const DefaultText = "etcd, with Tasks and events in SQLite"

// DefaultStorage is where an appliance that says nothing else stores: the
// embedded etcd, with the busy resources in a SQLite file beside it.
func DefaultStorage() config.Storage {
	const main, tasks = "main", "tasks"
	return config.Storage{
		Default:  main,
		Backends: []config.Backend{{Name: main, Endpoint: "etcd://"}, {Name: tasks, Endpoint: "sqlite://tasks.db"}},
		Routes: []config.Route{
			{Backend: tasks, Group: operatorapi.GroupName},
			{Backend: tasks, Group: aggregatorapi.GroupName},
			{Backend: tasks, Resource: "events"},
		},
	}
}

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

// CheckStorage refuses a storage that this build cannot serve. The error holds
// no password; a *config.BackendError names one of several backends.
func CheckStorage(chosen config.Storage) error {
	embedded := false
	for i, backend := range chosen.Backends {
		err := checkSpec(backend.Endpoint)
		if isEmbedded(backend) {
			if embedded {
				err = errors.New("there is one embedded etcd only: use sqlite://FILE, postgres://…, mysql://… or https://HOST:2379 for another backend")
			}
			embedded = true
		}
		switch {
		case err == nil:
		case len(chosen.Backends) == 1:
			return err
		default:
			return &config.BackendError{Index: i, Line: backend.Line, Err: err}
		}
	}
	_, err := Topology(chosen)
	return err
}

func isEmbedded(b config.Backend) bool { return backendOf(b.Endpoint) == embeddedEtcd }

func checkSpec(spec string) error {
	switch backend := backendOf(spec); backend {
	case "etcd":
		if spec == backend || spec == backend+"://" {
			return nil
		}
	case "sqlite":
		if spec == backend {
			return nil
		}
	case "postgres", "postgresql", "mysql", "https", "http":
	default:
		return fmt.Errorf("the storage %q is not known: use etcd, sqlite, sqlite://FILE, postgres://USER@HOST/DATABASE, mysql://USER@tcp(HOST:3306)/DATABASE or https://HOST:2379", backend)
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

// Topology is the storage as the store takes it. Its rules are checked; the
// passwords are those that were read.
func Topology(chosen config.Storage) (storage.Topology, error) {
	var topology storage.Topology
	if chosen.IsZero() {
		return topology, nil
	}
	for _, b := range chosen.Ordered() {
		topology.Backends = append(topology.Backends, storage.Backend{
			Name: b.Name, Spec: b.Endpoint, Password: b.Password, TLS: storage.TLS(b.TLS), Pool: storage.Pool(b.Pool),
		})
	}
	for _, r := range chosen.Routes {
		topology.Rules = append(topology.Rules, routing.Rule{
			Backend: r.Backend, Group: r.Group, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name, Prefix: r.Prefix, Regexp: r.Regexp,
		})
	}
	_, err := topology.Router()
	return topology, err
}

// newStore makes the store of a storage that CheckStorage accepted.
func newStore(options Options, folder *datadir.Folder, logs *logging.Logs) (store, error) {
	if isEtcdAlone(options.Storage) {
		return &etcd.Server{Dir: folder.Etcd(), Socket: folder.EtcdSocket(), Log: logs.Writer(Storage)}, nil
	}
	topology, err := Topology(options.Storage)
	if err != nil {
		return nil, err
	}
	return &serve.Server{
		Store: storage.Config{
			Topology: topology, DataDir: folder.Path,
			Etcd: storage.EmbeddedEtcd{Dir: folder.Etcd(), Socket: folder.MemberSocket(), Log: logs.Writer(Storage)},
		},
		Program:                version.String(),
		Listen:                 []string{"unix://" + folder.EtcdSocket()},
		ProgressNotifyInterval: progressNotifyInterval,
		Logger:                 logs.Slog(Storage),
	}, nil
}

// isEtcdAlone says that the API server talks to the embedded etcd directly.
func isEtcdAlone(chosen config.Storage) bool {
	return len(chosen.Backends) == 1 && isEmbedded(chosen.Backends[0])
}

// recordingStorage runs the store; once it has opened, the folder remembers that
// its objects are there.
func (a *Appliance) recordingStorage(s store) func(context.Context, func()) error {
	return func(ctx context.Context, ready func()) error {
		return s.Run(ctx, func() {
			text := a.options.Storage.String()
			if a.folder.State().Storage != text {
				err := a.folder.Update(func(s *datadir.State) { s.Storage, s.Topology = text, a.options.StorageKept })
				if err != nil {
					a.group.Fail(Storage, err)
					return
				}
			}
			ready()
		})
	}
}
