package storage

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/routing"
)

// Config says which databases a store lives in and how it behaves.
type Config struct {
	// Topology is for a store of several databases, or of one with a name;
	// without backends, Spec and Password are the only one.
	Topology
	// Spec names the database: "sqlite" (store.db in DataDir), "sqlite://FILE"
	// (relative to DataDir), "sqlite:///FILE", a postgres:// URL, mysql:// and the
	// driver's form of an address, "etcd" (the embedded one), or the http:// or
	// https:// URL of an existing etcd (members separated by commas).
	Spec string
	// Password is used instead of the one in a URL where it is not empty.
	Password string
	// DataDir is the folder of relative files. It must exist.
	DataDir string
	// Etcd is how the embedded etcd runs, where a backend is one.
	Etcd EmbeddedEtcd
	// Frozen opens the store to be looked at only: see mvcc.Options.
	Frozen bool
	// CacheBytes bounds the values kept in memory; 0 means 64 MiB.
	CacheBytes int64
	// RingBytes and RingEvents bound the events kept in memory for watches
	// that are a little late; 0 means 16 MiB and 50,000.
	RingBytes  int64
	RingEvents int
	// Slow is how long an operation takes before it is logged, with its key
	// and never its value; 0 means 500 ms.
	Slow time.Duration
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
	// Metrics is where the collectors are registered; nil registers none.
	Metrics prometheus.Registerer
}

// EmbeddedEtcd is where an etcd in this process lives.
type EmbeddedEtcd struct {
	// Dir is the folder of its database; default etcd in Config.DataDir.
	Dir string
	// Socket is the path of a unix socket that it answers on, for this
	// process alone; default member.sock in Config.DataDir.
	Socket string
	// Log takes its log, one JSON object a line; nil discards it.
	Log io.Writer
}

// Store is an open store. It implements server.Store; the caller closes it,
// after the servers on top of it.
type Store struct {
	*mvcc.Store
	// Router knows which backend holds a key.
	Router *routing.Router
}

// ceilingFile is the file in the data folder that keeps how far revisions were
// handed out, so that a store of several backends can start without one of them.
const ceilingFile = "revisions"

// Open opens the databases that the configuration names, makes or migrates
// their schemas, takes ownership of them and loads their indexes. ctx bounds
// the start alone. What is refused is refused with one line, and nothing is
// written then.
//
// A store of several backends opens though some of them cannot be reached:
// those answer with an error that names them until they are back. A topology
// that would not find keys that are stored is refused with a *StrandedError.
func Open(ctx context.Context, config Config) (*Store, error) {
	topology, err := config.topology()
	if err != nil {
		return nil, err
	}
	router, err := topology.Router()
	if err != nil {
		return nil, err
	}
	past := &remembered{}
	if config.DataDir != "" && !config.Frozen {
		if past, err = recall(config.DataDir); err != nil {
			return nil, err
		}
		if past.Moving != nil {
			return nil, errMoving
		}
	}
	backends, err := openBackends(ctx, config, topology)
	if err != nil {
		return nil, err
	}
	options := mvcc.Options{
		Backends:   backends,
		Router:     router,
		Frozen:     config.Frozen,
		CacheBytes: config.CacheBytes,
		RingBytes:  config.RingBytes,
		RingEvents: config.RingEvents,
		Slow:       config.Slow,
		Logger:     config.Logger,
		Metrics:    config.Metrics,
	}
	if len(backends) > 1 {
		options.Ceiling = mvcc.CeilingFile(filepath.Join(config.DataDir, ceilingFile))
	}
	engine, err := mvcc.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	store := &Store{Store: engine, Router: router}
	if config.DataDir == "" || config.Frozen {
		return store, nil
	}
	if err := store.checkPlaces(ctx, config, topology, past); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}
