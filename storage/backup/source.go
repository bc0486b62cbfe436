package backup

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/taskctl-dev/taskctl/storage/mvcc"
)

// OfStore is what a store holds at the revision that the caller keeps held.
func OfStore(held *mvcc.Held) Source { return heldSource{held} }

type heldSource struct{ held *mvcc.Held }

func (s heldSource) Revision() int64 { return s.held.Revision() }

func (s heldSource) Rows(ctx context.Context, fn func(*mvccpb.KeyValue) error) error {
	return s.held.Rows(ctx, fn)
}

func (s heldSource) Leases(ctx context.Context) ([]Lease, error) {
	found, err := s.held.Leases(ctx)
	leases := make([]Lease, len(found))
	for i, lease := range found {
		leases[i] = Lease{ID: lease.ID, TTL: lease.TTL, Remaining: lease.Remaining.Seconds()}
	}
	return leases, err
}
