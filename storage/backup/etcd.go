package backup

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// etcdKeys is how many keys are listed at a time, etcdValues how many are
	// read; etcd takes at most 128 operations in a transaction.
	etcdKeys   = 10_000
	etcdValues = 100
)

// OfEtcd is what an etcd holds now. Nothing keeps it from compacting the
// revision away while Rows reads: then that fails with etcd's ErrCompacted, and
// another try with a new source may be faster.
func OfEtcd(ctx context.Context, client *clientv3.Client) (Source, error) {
	now, err := client.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	if err != nil {
		return nil, fmt.Errorf("ask etcd for its revision: %w", err)
	}
	return &etcdSource{client: client, revision: now.Header.Revision}, nil
}

type etcdSource struct {
	client   *clientv3.Client
	revision int64
}

func (s *etcdSource) Revision() int64 { return s.revision }

// Rows lists the keys without their values, since they have to be brought into
// the order of their revisions.
func (s *etcdSource) Rows(ctx context.Context, fn func(*mvccpb.KeyValue) error) error {
	keys, err := s.keys(ctx)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(keys, etcdValues) {
		reads := make([]clientv3.Op, len(some))
		for i, found := range some {
			reads[i] = clientv3.OpGet(string(found.Key), clientv3.WithRev(s.revision))
		}
		answer, err := s.client.Txn(ctx).Then(reads...).Commit()
		if err != nil {
			return err
		}
		for i, response := range answer.Responses {
			rows := response.GetResponseRange().GetKvs()
			if len(rows) != 1 {
				return fmt.Errorf("etcd has no %q at revision %d any more", some[i].Key, s.revision)
			}
			if err := fn(rows[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *etcdSource) keys(ctx context.Context) ([]*mvccpb.KeyValue, error) {
	var keys []*mvccpb.KeyValue
	for from := "\x00"; ; {
		page, err := s.client.Get(ctx, from, clientv3.WithFromKey(), clientv3.WithKeysOnly(), clientv3.WithLimit(etcdKeys), clientv3.WithRev(s.revision))
		if err != nil {
			return nil, err
		}
		keys = append(keys, page.Kvs...)
		if !page.More || len(page.Kvs) == 0 {
			break
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
	slices.SortFunc(keys, func(a, b *mvccpb.KeyValue) int {
		return cmp.Or(cmp.Compare(a.ModRevision, b.ModRevision), bytes.Compare(a.Key, b.Key))
	})
	return keys, nil
}

// Leases are those that exist now.
func (s *etcdSource) Leases(ctx context.Context) ([]Lease, error) {
	found, err := s.client.Leases(ctx)
	if err != nil {
		return nil, err
	}
	var leases []Lease
	for _, lease := range found.Leases {
		left, err := s.client.TimeToLive(ctx, lease.ID)
		if err != nil {
			return nil, err
		}
		if left.TTL >= 0 { // else it has expired meanwhile
			leases = append(leases, Lease{ID: int64(lease.ID), TTL: left.GrantedTTL, Remaining: float64(left.TTL)})
		}
	}
	return leases, nil
}
