package etcddb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// readPage is how many versions are handed out without the lock being given to
// writers in between.
const readPage = 512

// over says why nothing is read any more.
func (s *session) over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.ctx.Err() != nil {
		return errOver
	}
	return nil
}

// each calls fn for every version, until it stops.
func each(versions []*backend.Version, fn func(*backend.Version) error) (stop bool, err error) {
	for _, v := range versions {
		if err := fn(v); err != nil {
			if errors.Is(err, backend.ErrStop) {
				err = nil
			}
			return true, err
		}
	}
	return false, nil
}

// Newest reads from memory.
func (s *session) Newest(ctx context.Context, from, end []byte, upTo int64, fn func(*backend.Version) error) error {
	for first := string(from); ; {
		if err := s.over(ctx); err != nil {
			return err
		}
		var found []*backend.Version
		looked, more := 0, false
		s.index.mu.RLock()
		s.index.keys.AscendGreaterOrEqual(&chain{key: first}, func(c *chain) bool {
			if end != nil && c.key >= string(end) {
				return false
			}
			if looked == readPage {
				first, more = c.key, true
				return false
			}
			looked++
			if r := c.upTo(upTo); r != nil {
				v := r.versionOf()
				v.Sub, v.Prev = 0, 0 // not asked for
				found = append(found, v)
			}
			return true
		})
		s.index.mu.RUnlock()
		if stop, err := each(found, fn); stop || !more {
			return err
		}
	}
}

// Scan reads from memory, and values, if they are asked for, from etcd.
func (s *session) Scan(ctx context.Context, after, upTo int64, values bool, fn func(*backend.Version) error) error {
	size := readPage
	if values {
		size = valuePage
	}
	for {
		if err := s.over(ctx); err != nil {
			return err
		}
		var found []*backend.Version
		s.index.mu.RLock()
		for i := s.index.position(after + 1); i < len(s.index.byID) && len(found) < size; i++ {
			if r := s.index.byID[i]; r.id > upTo {
				break
			} else if !r.removed {
				found = append(found, r.versionOf())
			}
		}
		s.index.mu.RUnlock()
		if values {
			if err := s.fill(ctx, found); err != nil {
				return err
			}
		}
		if stop, err := each(found, fn); stop || len(found) < size {
			return err
		}
		after = found[len(found)-1].ID
	}
}

// fill reads the values of versions.
func (s *session) fill(ctx context.Context, versions []*backend.Version) error {
	var ids []int64
	var positions []int
	for position, v := range versions {
		if !v.Deleted {
			ids, positions = append(ids, v.ID), append(positions, position)
		}
	}
	return s.Values(ctx, ids, func(n int, value []byte) { versions[positions[n]].Value = value })
}

// Next reads from memory.
func (s *session) Next(ctx context.Context, id int64) (foundID, revision int64, found bool, err error) {
	if err := s.over(ctx); err != nil {
		return 0, 0, false, err
	}
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	for _, r := range s.index.byID[s.index.position(id):] {
		if !r.removed {
			return r.id, r.rev, true, nil
		}
	}
	return 0, 0, false, nil
}

// valuePage is how many values are read by one transaction of etcd's, which
// stays below its limit.
const valuePage = 100

// Values reads each value at the etcd revision of its version, from etcd's own
// history.
func (s *session) Values(ctx context.Context, ids []int64, fn func(position int, value []byte)) error {
	page := min(valuePage, s.db.config.MaxTxnOps)
	for base := 0; base < len(ids); base += page {
		if err := s.over(ctx); err != nil {
			return err
		}
		if err := s.valuesOf(ctx, ids[base:min(base+page, len(ids))], base, fn); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) valuesOf(ctx context.Context, ids []int64, base int, fn func(position int, value []byte)) error {
	for attempt := 0; ; attempt++ {
		operations, ats, err := s.gets(ids)
		if err != nil {
			return err
		}
		answer, err := s.read(ctx, operations)
		if errors.Is(err, rpctypes.ErrCompacted) && attempt < 3 {
			// Somebody else has compacted the etcd.
			first, failed := oldest(ctx, s.client, s.known())
			if failed != nil {
				return failed
			}
			s.compactor.reached(first)
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("read values of etcd: %w", explain(err))
		}
		for i := range ids {
			kvs := answer.Responses[i].GetResponseRange().Kvs
			switch {
			case ats[i] == 0:
				fn(base+i, nil)
			case len(kvs) != 1 || kvs[0].ModRevision != ats[i]:
				return &backend.Missing{ID: ids[i]}
			default:
				value := kvs[0].Value
				if value == nil {
					value = []byte{}
				}
				fn(base+i, value)
			}
		}
		return nil
	}
}

const (
	// readLimit is how long a read is tried again while no member is connected.
	readLimit = 3 * time.Second
	readPause = 50 * time.Millisecond
)

// read runs a transaction that only reads, which may be done again.
func (s *session) read(ctx context.Context, operations []clientv3.Op) (*clientv3.TxnResponse, error) {
	for end := time.Now().Add(readLimit); ; {
		bounded, cancel := context.WithTimeout(ctx, s.db.config.CommitTimeout)
		answer, err := s.client.Txn(bounded).Then(operations...).Commit()
		cancel()
		if err == nil || status.Code(err) != codes.Unavailable || time.Now().After(end) {
			return answer, err
		}
		select {
		case <-time.After(readPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.ctx.Done():
			return nil, errOver
		}
	}
}

// known is an etcd revision that exists.
func (s *session) known() int64 {
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	return max(s.index.revision, s.index.clockAt)
}

// gets makes the reads of values. One that was put before the oldest revision
// of etcd's history is still there if nothing has replaced it since.
func (s *session) gets(ids []int64) (operations []clientv3.Op, ats []int64, err error) {
	first := s.compactor.first()
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	for _, id := range ids {
		r := s.index.get(id)
		if r == nil {
			return nil, nil, &backend.Missing{ID: id}
		}
		if r.deleted {
			operations, ats = append(operations, clientv3.OpGet(metaKey, clientv3.WithCountOnly())), append(ats, 0)
			continue
		}
		operations = append(operations, clientv3.OpGet(r.chain.key, clientv3.WithRev(max(r.at, first))))
		ats = append(ats, r.at)
	}
	return operations, ats, nil
}

// Leases reads from memory.
func (s *session) Leases(ctx context.Context, fn func(backend.Lease) error) error {
	if err := s.over(ctx); err != nil {
		return err
	}
	s.index.mu.RLock()
	all := make([]backend.Lease, 0, len(s.index.leases))
	for _, lease := range s.index.leases {
		all = append(all, lease)
	}
	s.index.mu.RUnlock()
	for _, lease := range all {
		if err := fn(lease); err != nil {
			if errors.Is(err, backend.ErrStop) {
				return nil
			}
			return err
		}
	}
	return nil
}
