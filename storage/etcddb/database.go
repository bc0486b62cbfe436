package etcddb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Database is an etcd that the store keeps a part of its keys in.
type Database struct {
	config  Config
	process *process // the embedded etcd; nil for another

	mu      sync.Mutex // held by Acquire and Close
	closed  bool
	session *session
	lease   int64  // that the ownership rests on; 0 if there is none
	index   *index // of the last session
	// unsettled says that a batch may be on its way to an etcd that has none
	// of ours yet.
	unsettled bool
}

var _ backend.Database = (*Database)(nil)

// openTimeout bounds finding a member that answers.
const openTimeout = 10 * time.Second

// Open checks that the etcd can be reached and that it is one that this program
// can use. Nothing is written.
func Open(ctx context.Context, config Config) (*Database, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	d := &Database{config: config}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	client, answer, err := d.reach(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if kvs := answer.Responses[0].GetResponseRange().Kvs; len(kvs) == 1 {
		if err := new(meta).decode(kvs[0].Value); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// reach connects to a member that answers a linearizable read, and returns what
// it answered for meta and clock.
func (d *Database) reach(ctx context.Context) (*clientv3.Client, *clientv3.TxnResponse, error) {
	var failures []error
	for i, endpoint := range d.config.Endpoints {
		client, err := d.config.client(endpoint)
		if err != nil {
			return nil, nil, err
		}
		// Each gets its share of the time.
		bounded, cancel := context.WithTimeout(ctx, d.share(ctx, len(d.config.Endpoints)-i))
		answer, err := client.Txn(bounded).Then(clientv3.OpGet(metaKey), clientv3.OpGet(clockKey)).Commit()
		cancel()
		if err == nil {
			return client, answer, nil
		}
		failures = append(failures, fmt.Errorf("the etcd at %s does not answer: %w", endpoint, explain(err)))
		_ = client.Close()
		if ctx.Err() != nil {
			break
		}
	}
	return nil, nil, errors.Join(failures...)
}

func (d *Database) share(ctx context.Context, left int) time.Duration {
	rest := openTimeout
	if deadline, ok := ctx.Deadline(); ok {
		rest = min(rest, time.Until(deadline))
	}
	return rest / time.Duration(left)
}

// Kind is "etcd".
func (d *Database) Kind() string { return "etcd" }

// Close gives the ownership back and stops an embedded etcd.
func (d *Database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	var err error
	if d.session != nil {
		err = d.session.Close()
	}
	if d.lease != 0 {
		client, failed := d.config.client(d.config.Endpoints...)
		if failed == nil {
			release(context.Background(), client, d.lease)
			failed = client.Close()
		}
		err = errors.Join(err, failed)
	}
	if d.process != nil {
		err = errors.Join(err, d.process.stop())
	}
	return err
}

// Acquire makes this process the owner. Before the first batch there is nothing
// that an epoch would have to guard, and nothing is written.
func (d *Database) Acquire(ctx context.Context) (backend.Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.New("the database is closed")
	}
	if d.session != nil {
		if err := d.session.Close(); err != nil {
			d.config.Logger.Debug("closing the old session of an etcd", "error", err)
		}
		d.session = nil
	}
	if d.process != nil {
		if err := d.process.start(ctx); err != nil {
			return nil, err
		}
	}
	member, _, err := d.reach(ctx)
	if err != nil {
		return nil, err
	}
	defer member.Close()
	if err := d.own(ctx, member); err != nil {
		return nil, explain(err)
	}
	client, err := d.config.client(d.config.Endpoints...)
	if err != nil {
		return nil, err
	}
	s := newSession(d, client)
	if d.process != nil {
		// After a fatal error etcd may leave requests without an answer.
		over := d.process.over()
		s.done.Go(func() {
			select {
			case <-over:
				s.cancel()
			case <-s.ctx.Done():
			}
		})
	}
	if err := s.start(ctx, member); err != nil {
		return nil, errors.Join(explain(err), s.Close())
	}
	d.session, d.index, d.unsettled = s, s.index, false
	return s, nil
}
