package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"
	etcdbackend "go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/taskctl-dev/taskctl/storage/backup"
)

// restoreBatch is how many rows go into one transaction of the database.
const restoreBatch = 10_000

// Restore brings a backup into the server's folder, which must not exist: a new
// server is made, and its database filled under it as etcdutl does from a
// snapshot, so that the rows keep their revisions. It goes on at a revision far
// above that of the backup and above, and everything below is compacted. open
// opens the backup from its beginning; the folder is there only after a success.
//
// Leases begin again with their full time, as they do whenever an etcd starts.
func (s *Server) Restore(ctx context.Context, open func() (io.ReadCloser, error), above int64) (backup.Restored, error) {
	var done backup.Restored
	if _, err := os.Lstat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		return done, fmt.Errorf("etcd: the folder %s is there already", s.Dir)
	}
	making := *s
	making.Dir = s.Dir + ".restoring"
	if err := os.RemoveAll(making.Dir); err != nil {
		return done, fmt.Errorf("etcd: %w", explain(err))
	}
	defer os.RemoveAll(making.Dir)
	if err := making.bear(ctx); err != nil {
		return done, err
	}
	done, err := making.fill(open, above)
	if err != nil {
		return done, fmt.Errorf("etcd: fill the database: %w", explain(err))
	}
	return done, os.Rename(making.Dir, s.Dir)
}

// bear runs the server once, which makes its member and its log.
func (s *Server) bear(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	born := false
	err := s.Run(ctx, func() {
		born = true
		stop()
	})
	if err == nil && !born {
		return ctx.Err()
	}
	return err
}

// fill writes the backup into the database of a server that does not run.
func (s *Server) fill(open func() (io.ReadCloser, error), above int64) (done backup.Restored, err error) {
	file, err := open()
	if err != nil {
		return done, err
	}
	defer file.Close()
	database := etcdbackend.NewDefaultBackend(zap.NewNop(), filepath.Join(s.Dir, "member", "snap", "db"))
	defer func() {
		database.ForceCommit()
		err = errors.Join(err, database.Close())
	}()
	tx := database.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	tx.UnsafeCreateBucket(schema.Key)
	schema.UnsafeCreateLeaseBucket(tx)
	at, waiting := mvcc.Revision{}, 0
	done.Summary, err = backup.Read(file, backup.Content{
		Row: func(row *mvccpb.KeyValue) error {
			value, err := proto.Marshal(row)
			if err != nil {
				return err
			}
			at.Sub++
			if row.ModRevision != at.Main {
				at = mvcc.Revision{Main: row.ModRevision}
			}
			tx.UnsafeSeqPut(schema.Key, mvcc.RevToBytes(at, mvcc.NewRevBytes()), value)
			if waiting++; waiting == restoreBatch {
				// The end of a lock commits what is waiting.
				waiting = 0
				tx.Unlock()
				tx.LockOutsideApply()
			}
			return nil
		},
		Lease: func(lease backup.Lease) error {
			schema.MustUnsafePutLease(tx, &leasepb.Lease{ID: lease.ID, TTL: max(lease.TTL, 1)})
			return nil
		},
	})
	if err != nil {
		return done, err
	}
	done.Start = backup.StartAbove(done.Header, above)
	done.ByBackend = map[string]int64{backendName: done.Rows}
	// A row without anything is how etcdutl raises the revision.
	tx.UnsafeSeqPut(schema.Key, mvcc.RevToBytes(mvcc.Revision{Main: done.Start}, mvcc.NewRevBytes()), nil)
	mvcc.UnsafeSetScheduledCompact(tx, done.Start)
	return done, nil
}

// backendName is what the embedded etcd is called where it is the only backend.
const backendName = "etcd"
