package mvcc

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// homeLane is the backend that stores a lease until a key is put under it
// elsewhere.
const homeLane = 0

func (s *Store) header() *pb.ResponseHeader {
	return &pb.ResponseHeader{Revision: s.sequencer.now()}
}

// LeaseGrant stores a lease.
func (s *Store) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if r.TTL > maxLeaseTTL {
		return nil, rpctypes.ErrLeaseTTLTooLarge
	}
	row := backend.Lease{ID: r.ID, TTL: max(r.TTL, minLeaseTTL)}
	for row.ID == 0 {
		row.ID = rand.Int64()
	}
	err := s.shards[homeLane].do(ctx, &job{
		evaluate: func(b *batch) error {
			granted := slices.ContainsFunc(b.store.PutLeases, func(other backend.Lease) bool { return other.ID == row.ID })
			if granted || s.lessor.get(row.ID) != nil {
				return rpctypes.ErrLeaseExist
			}
			row.Deadline = time.Now().Add(time.Duration(row.TTL) * time.Second).UnixMilli()
			b.store.PutLeases = append(b.store.PutLeases, row)
			return nil
		},
		stored: func() { s.lessor.add(row, homeLane) },
	})
	if err != nil {
		return nil, err
	}
	return &pb.LeaseGrantResponse{Header: s.header(), ID: row.ID, TTL: row.TTL}, nil
}

// LeaseRevoke removes a lease and, at one revision of each backend, its keys.
func (s *Store) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	revision, err := s.revoke(ctx, r.ID, false)
	if err != nil {
		return nil, err
	}
	header := s.header()
	if revision != 0 {
		// Like every write's, the answer's revision is exactly its own.
		header.Revision = revision
	}
	return &pb.LeaseRevokeResponse{Header: header}, nil
}

// revoke removes the keys from all backends that may have some, the lease's
// own rows last, so that a crash in between leaves the lease to be revoked. It
// returns the newest revision that this took, 0 if the lease had no keys.
func (s *Store) revoke(ctx context.Context, id int64, expired bool) (revision int64, err error) {
	lanes := s.lessor.lanesOf(id)
	if len(lanes) == 0 {
		return 0, rpctypes.ErrLeaseNotFound
	}
	// The home goes last; it is the first.
	slices.Reverse(lanes)
	var begun atomic.Bool
	for i, lane := range lanes {
		var taken int64
		j := &job{
			evaluate: func(b *batch) error {
				if !begun.Load() && !s.lessor.begin(id, expired) {
					return rpctypes.ErrLeaseNotFound
				}
				begun.Store(true)
				var err error
				if taken, err = b.revoke(id); err != nil {
					return err
				}
				b.store.DeleteLeases = append(b.store.DeleteLeases, id)
				return nil
			},
			failed: func() {
				if begun.Swap(false) {
					s.lessor.abandon(id)
				}
			},
		}
		if i == len(lanes)-1 {
			j.stored = func() { s.lessor.remove(id) }
		}
		if err := s.shards[lane].do(ctx, j); err != nil {
			return 0, err
		}
		revision = max(revision, taken)
	}
	return revision, nil
}

// revoke deletes the lease's keys that the batch's backend holds, as one
// revision. It returns that, or 0 if there are none.
func (b *batch) revoke(id int64) (int64, error) {
	keys := b.shard.lessor.keysOf(id)
	for _, c := range b.leases {
		if c.to == id && !slices.Contains(keys, c.key) {
			keys = append(keys, c.key)
		}
	}
	slices.Sort(keys)
	for {
		w := b.newWriter(0)
		for _, key := range keys {
			if i := b.edit.peek().get(key); i != nil && i.lease == id {
				w.delete(pointSpan(key))
			}
		}
		if err := b.admits(w.changes); err != nil {
			w.rollback()
			return 0, err
		}
		if revision, drawn := w.finish(); drawn {
			return revision, nil
		}
		w.rollback()
	}
}

// LeaseKeepAlive gives the lease its granted time again, durably.
func (s *Store) LeaseKeepAlive(ctx context.Context, r *pb.LeaseKeepAliveRequest) (*pb.LeaseKeepAliveResponse, error) {
	found := s.lessor.get(r.ID)
	if found != nil && s.lessor.hasExpired(r.ID) {
		// It is being revoked; the answer must not overtake that.
		select {
		case <-found.revoked:
			found = nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if found == nil {
		return &pb.LeaseKeepAliveResponse{Header: s.header(), ID: r.ID}, nil
	}
	var deadline time.Time
	err := s.shards[homeLane].do(ctx, &job{
		evaluate: func(b *batch) error {
			deadline = time.Now().Add(time.Duration(found.ttl) * time.Second)
			if !s.lessor.extend(r.ID, deadline) {
				return rpctypes.ErrLeaseNotFound
			}
			b.store.PutLeases = append(b.store.PutLeases, backend.Lease{ID: r.ID, TTL: found.ttl, Deadline: deadline.UnixMilli()})
			return nil
		},
		stored: func() { s.lessor.renewed(r.ID, deadline) },
	})
	if err == rpctypes.ErrLeaseNotFound {
		return &pb.LeaseKeepAliveResponse{Header: s.header(), ID: r.ID}, nil
	}
	if err != nil {
		return nil, err
	}
	return &pb.LeaseKeepAliveResponse{Header: s.header(), ID: r.ID, TTL: found.ttl}, nil
}

// LeaseTimeToLive tells granted and remaining seconds and, if asked, the keys.
func (s *Store) LeaseTimeToLive(_ context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	ttl, rest, found := s.lessor.remaining(r.ID)
	if !found {
		return nil, rpctypes.ErrLeaseNotFound
	}
	response := &pb.LeaseTimeToLiveResponse{Header: s.header(), ID: r.ID, TTL: rest, GrantedTTL: ttl}
	if r.Keys {
		for _, key := range s.lessor.keysOf(r.ID) {
			response.Keys = append(response.Keys, []byte(key))
		}
	}
	return response, nil
}

// LeaseLeases lists the leases, the first to expire first.
func (s *Store) LeaseLeases(context.Context, *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	response := &pb.LeaseLeasesResponse{Header: s.header()}
	for _, id := range s.lessor.all() {
		response.Leases = append(response.Leases, &pb.LeaseStatus{ID: id})
	}
	return response, nil
}

// expireInterval and expireLimit are etcd's: at most 1,000 leases a second.
const (
	expireInterval = 500 * time.Millisecond
	expireLimit    = 500
)

// expireLeases revokes leases whose time has run out, until the store closes.
func (s *Store) expireLeases() {
	defer s.done.Done()
	ticker := time.NewTicker(expireInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		for _, id := range s.lessor.expired(expireLimit) {
			_, err := s.revoke(s.ctx, id, true)
			if err != nil && err != rpctypes.ErrLeaseNotFound && s.ctx.Err() == nil {
				s.log.Warn("an expired lease cannot be revoked yet", "lease", id, "error", err)
				break
			}
		}
	}
}
