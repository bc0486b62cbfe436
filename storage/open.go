package storage

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/mysql"
	"github.com/taskctl-dev/taskctl/storage/postgres"
	"github.com/taskctl-dev/taskctl/storage/sqlite"
)

// Config says which database a store lives in and how it behaves.
type Config struct {
	// Spec names the database: "sqlite" (store.db in DataDir), "sqlite://FILE"
	// (relative to DataDir), "sqlite:///FILE", a postgres:// URL or mysql:// and the driver's
	// form of an address.
	Spec string
	// Password is used instead of the one in a URL where it is not empty.
	Password string
	// DataDir is the folder of relative files. It must exist.
	DataDir string
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

// Store is an open store. It implements server.Store; the caller closes it,
// after the servers on top of it.
type Store struct {
	*mvcc.Store
}

// Open opens the database that the configuration names, makes or migrates its
// schema, takes ownership of it and loads its index. ctx bounds the start
// alone. What is refused is refused with one line, and nothing is written then.
func Open(ctx context.Context, config Config) (*Store, error) {
	name, database, err := openDatabase(ctx, config)
	if err != nil {
		return nil, err
	}
	store, err := mvcc.Open(ctx, mvcc.Options{
		Backends:   []mvcc.Backend{{Name: name, Database: database}},
		CacheBytes: config.CacheBytes,
		RingBytes:  config.RingBytes,
		RingEvents: config.RingEvents,
		Slow:       config.Slow,
		Logger:     config.Logger,
		Metrics:    config.Metrics,
	})
	if err != nil {
		return nil, err
	}
	return &Store{Store: store}, nil
}

// openDatabase opens the database of the spec and names it by its kind.
func openDatabase(ctx context.Context, config Config) (string, backend.Database, error) {
	kind, rest, _ := strings.Cut(config.Spec, ":")
	switch kind {
	case "sqlite":
		path, err := sqlitePath(rest, config.DataDir)
		if err != nil {
			return "", nil, err
		}
		database, err := sqlite.Open(ctx, sqlite.Config{Path: path})
		if err != nil {
			return "", nil, err
		}
		return kind, database, nil
	case "postgres", "postgresql":
		database, err := postgres.Open(ctx, postgres.Config{DSN: config.Spec, Password: config.Password, Logger: config.Logger})
		if err != nil {
			return "", nil, err
		}
		return "postgres", database, nil
	case "mysql":
		database, err := mysql.Open(ctx, mysql.Config{DSN: config.Spec, Password: config.Password, Logger: config.Logger})
		if err != nil {
			return "", nil, err
		}
		return kind, database, nil
	}
	return "", nil, fmt.Errorf("storage %q is of no kind that this program knows; use sqlite, sqlite:///FILE, postgres://USER@HOST/DATABASE or mysql://USER@tcp(HOST:3306)/DATABASE", kind)
}

func sqlitePath(rest, dataDir string) (string, error) {
	if rest == "" {
		return filepath.Join(dataDir, "store.db"), nil
	}
	name, ok := strings.CutPrefix(rest, "//")
	if ok {
		unescaped, err := url.PathUnescape(name)
		ok = err == nil && unescaped != ""
		name = unescaped
	}
	if !ok {
		return "", fmt.Errorf("storage sqlite:%s names no file; write sqlite:///FILE", rest)
	}
	if filepath.IsAbs(name) {
		return name, nil
	}
	return filepath.Join(dataDir, name), nil
}
