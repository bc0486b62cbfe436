package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/taskctl-dev/taskctl/storage/etcddb"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
)

// Leave gives the etcd that Config.Spec names to others: see
// etcddb.Database.Leave. No store may be open on it. past is the newest
// revision that clients may have seen of a store with other backends; of one in
// Config.DataDir it is known.
func Leave(ctx context.Context, config Config, past int64) (left etcddb.Left, err error) {
	kind, err := kindOf(config.Spec)
	if err != nil {
		return left, err
	}
	if kind != "etcd" {
		return left, fmt.Errorf("only an etcd can be left to others; in a %s nobody else can read what the store has written", kind)
	}
	if config.DataDir != "" {
		handedOut, err := mvcc.CeilingFile(filepath.Join(config.DataDir, ceilingFile)).Load()
		if err != nil {
			return left, err
		}
		past = max(past, handedOut)
	}
	database, err := openEtcd(ctx, config, Backend{Name: kind, Spec: config.Spec, Password: config.Password}, config.Logger)
	if err != nil {
		return left, err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	return database.(*etcddb.Database).Leave(ctx, past)
}
