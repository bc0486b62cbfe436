package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/etcddb"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/mysql"
	"github.com/taskctl-dev/taskctl/storage/postgres"
	"github.com/taskctl-dev/taskctl/storage/sqlite"
)

// kindOf is the kind of database that a SPEC names, as backend.Database calls
// it. The error holds no password.
func kindOf(spec string) (string, error) {
	switch kind, _, _ := strings.Cut(spec, ":"); kind {
	case "sqlite", "postgres", "mysql":
		return kind, nil
	case "postgresql":
		return "postgres", nil
	case "etcd", "http", "https":
		return "etcd", nil
	default:
		return "", fmt.Errorf("storage %q is of no kind that this program knows; use sqlite, sqlite:///FILE, postgres://USER@HOST/DATABASE, mysql://USER@tcp(HOST:3306)/DATABASE or https://HOST:2379", kind)
	}
}

// openBackends opens all databases of a topology at the same time.
func openBackends(ctx context.Context, config Config, topology Topology) ([]mvcc.Backend, error) {
	opened := make([]mvcc.Backend, len(topology.Backends))
	failed := make([]error, len(opened))
	var opening sync.WaitGroup
	for i, b := range topology.Backends {
		opening.Go(func() {
			opened[i].Name = b.Name
			opened[i].Database, failed[i] = openBackend(ctx, config, b, len(topology.Backends) > 1)
		})
	}
	opening.Wait()
	err := errors.Join(failed...)
	if err == nil {
		return opened, nil
	}
	for i := range opened {
		if failed[i] == nil {
			err = errors.Join(err, opened[i].Database.Close())
		}
	}
	return nil, err
}

// openBackend opens one database. One of several may be out of reach for now.
func openBackend(ctx context.Context, config Config, b Backend, several bool) (backend.Database, error) {
	kind, err := kindOf(b.Spec)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (backend.Database, error) { return openDatabase(ctx, config, kind, b) }
	database, err := open(ctx)
	switch {
	case err == nil:
		return database, nil
	case !several:
		return nil, err
	case errors.Is(err, backend.ErrUnreachable):
		if config.Logger != nil {
			config.Logger.Warn("a storage backend cannot be reached yet", "backend", b.Name, "error", err)
		}
		return &lateDatabase{kind: kind, open: open}, nil
	}
	return nil, fmt.Errorf("storage backend %q: %w", b.Name, err)
}

// openDatabase is where kinds of databases are known.
func openDatabase(ctx context.Context, config Config, kind string, b Backend) (backend.Database, error) {
	logger := config.Logger
	if logger != nil {
		logger = logger.With(slog.String("backend", b.Name))
	}
	protection, err := b.TLS.Config()
	if err != nil {
		return nil, err
	}
	switch kind {
	case "sqlite":
		path, err := sqlitePath(strings.TrimPrefix(strings.TrimPrefix(b.Spec, "sqlite"), ":"), config.DataDir)
		if err != nil {
			return nil, err
		}
		if err := makeFolderIn(config.DataDir, path); err != nil {
			return nil, err
		}
		return sqlite.Open(ctx, sqlite.Config{Path: path})
	case "postgres":
		return postgres.Open(ctx, postgres.Config{
			DSN: b.Spec, Password: b.Password, Logger: logger, TLS: protection,
			Readers: b.Pool.readers(), IdleReaders: b.Pool.MaxIdle, ReaderLife: b.Pool.MaxLifeTime, ReaderIdleLife: b.Pool.MaxIdleLifeTime,
		})
	case "mysql":
		return mysql.Open(ctx, mysql.Config{
			DSN: b.Spec, Password: b.Password, Logger: logger, TLS: protection,
			Readers: b.Pool.readers(), IdleReaders: b.Pool.MaxIdle, ReaderLife: b.Pool.MaxLifeTime, ReaderIdleLife: b.Pool.MaxIdleLifeTime,
		})
	}
	return openEtcd(ctx, config, b, logger)
}

// makeFolderIn makes the folder of a file that lies below the data folder,
// which must be there itself. Elsewhere it makes nothing.
func makeFolderIn(dataDir, file string) error {
	inside, err := filepath.Rel(dataDir, filepath.Dir(file))
	if err != nil || inside == "." || !filepath.IsLocal(inside) {
		return nil
	}
	root, err := os.OpenRoot(dataDir)
	if err != nil {
		return fmt.Errorf("open the data folder: %w", err)
	}
	defer root.Close()
	if err := root.MkdirAll(inside, 0o700); err != nil {
		return fmt.Errorf("make the folder of the database in %s: %w", dataDir, err)
	}
	return nil
}

// openEtcd opens the embedded etcd or an existing one.
func openEtcd(ctx context.Context, config Config, b Backend, logger *slog.Logger) (backend.Database, error) {
	if isEmbedded(b) {
		embedded := etcddb.Embedded{
			Dir:    embeddedDir(config),
			Socket: cmp.Or(config.Etcd.Socket, filepath.Join(config.DataDir, "member.sock")),
			Log:    config.Etcd.Log,
		}
		return etcddb.OpenEmbedded(ctx, embedded, etcddb.Config{Logger: logger})
	}
	existing, err := etcddb.ParseURL(b.Spec)
	if err != nil {
		return nil, err
	}
	existing.Logger = logger
	if b.TLS != (TLS{}) {
		existing.CAFile, existing.CertFile, existing.KeyFile = b.TLS.CAFile, b.TLS.CertFile, b.TLS.KeyFile
		existing.InsecureSkipVerify = b.TLS.SkipVerify
	}
	if b.Password != "" {
		existing.Password = b.Password
	}
	return etcddb.Open(ctx, existing)
}

// isEmbedded says that a backend is the etcd in this process.
func isEmbedded(b Backend) bool { return strings.HasPrefix(b.Spec, "etcd") }

// embeddedDir is the folder of the etcd in this process.
func embeddedDir(config Config) string {
	return cmp.Or(config.Etcd.Dir, filepath.Join(config.DataDir, "etcd"))
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
