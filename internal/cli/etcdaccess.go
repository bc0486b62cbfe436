package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/backup"
	"github.com/taskctl-dev/taskctl/storage/etcd"
)

// embeddedEtcd is the SPEC of the embedded etcd, and what it is called where it
// is the only backend.
const embeddedEtcd = "etcd"

// etcdClient is a client of an etcd; the caller closes it.
func etcdClient(endpoint storage.Endpoint) (*clientv3.Client, error) {
	protection, err := storage.TLS{CAFile: endpoint.CAFile, CertFile: endpoint.CertFile, KeyFile: endpoint.KeyFile}.Config()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint.URL}, TLS: protection, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}

// isEtcdAlone says that the objects are kept by the embedded etcd and nothing
// else.
func isEtcdAlone(chosen config.Storage) bool { return chosen.String() == embeddedEtcd }

// withStoppedEtcd runs the embedded etcd of a folder for as long as fn takes.
func withStoppedEtcd(ctx context.Context, folder *datadir.Folder, fn func(context.Context, *clientv3.Client) error) error {
	server := &etcd.Server{Dir: folder.Etcd(), Socket: folder.EtcdSocket(), Log: io.Discard}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- server.Run(ctx, func() { close(ready) }) }()
	select {
	case err := <-ended:
		return err
	case <-ready:
	}
	client, err := etcdClient(server.Endpoint())
	if err == nil {
		err = errors.Join(fn(ctx, client), client.Close())
	}
	stop()
	return errors.Join(err, <-ended)
}

// restoreEtcd makes the folder's embedded etcd anew from a backup. What it was
// before is kept beside it until that has succeeded.
func restoreEtcd(ctx context.Context, folder *datadir.Folder, open func() (io.ReadCloser, error), replace bool, changing func() error) (done backup.Restored, err error) {
	above := int64(0)
	if _, err := os.Lstat(folder.Etcd()); err == nil {
		err := withStoppedEtcd(ctx, folder, func(ctx context.Context, client *clientv3.Client) error {
			all, err := client.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
			if err != nil {
				return err
			}
			above = all.Header.Revision
			if all.Count > 0 && !replace {
				return &backup.NotEmptyError{Backend: embeddedEtcd}
			}
			return nil
		})
		if err != nil {
			return done, err
		}
	}
	if err := changing(); err != nil {
		return done, err
	}
	replaced := folder.Etcd() + ".replaced"
	if err := os.RemoveAll(replaced); err != nil {
		return done, err
	}
	if err := os.Rename(folder.Etcd(), replaced); err != nil && !errors.Is(err, os.ErrNotExist) {
		return done, err
	}
	server := &etcd.Server{Dir: folder.Etcd(), Socket: folder.EtcdSocket(), Log: io.Discard}
	done, err = server.Restore(ctx, open, above)
	if err != nil {
		if back := os.Rename(replaced, folder.Etcd()); back != nil && !errors.Is(back, os.ErrNotExist) {
			err = errors.Join(err, back)
		}
		return done, err
	}
	return done, os.RemoveAll(replaced)
}
