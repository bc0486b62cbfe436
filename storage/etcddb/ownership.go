package etcddb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Who owns an etcd holds one of its leases, by an ID that begins with
// ownerMagic, and keeps it alive. A lease is no key: neither adopting an etcd
// nor renewing the ownership moves its revision. That no batch of a former
// owner arrives is not up to the lease but to the epoch that each batch
// compares.
//
// Whoever wants to own it waits until there is no such lease, then makes one
// and looks again. Of several who did so at a time, the one with the lowest ID
// stays; a lease that is renewed meanwhile belongs to an owner.
const ownerMagic = int64(0x7461736b) << 32 // "task"

func isOwner(lease int64) bool { return lease>>32 == ownerMagic>>32 }

const (
	// leaseMargin is how much longer the lease lasts than the term that the
	// engine is told.
	leaseMargin = time.Second
	// ownerPoll is how often other owners' leases are looked at.
	ownerPoll = 200 * time.Millisecond
	// expirySlack is how long after its end etcd may still know a lease.
	expirySlack = 3 * time.Second
)

// own takes the ownership. The client has one endpoint: what a member has
// granted itself, its own list of leases reflects, and so everything before.
func (d *Database) own(ctx context.Context, client *clientv3.Client) error {
	if d.lease != 0 {
		_, err := client.KeepAliveOnce(ctx, clientv3.LeaseID(d.lease))
		if err == nil {
			return nil
		}
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
		d.lease = 0
	}
	watch := ownerWatch{client: client}
	for {
		if err := watch.wait(ctx, func(int64) bool { return true }); err != nil {
			return err
		}
		id := ownerMagic | int64(rand.Uint32())
		ttl := int64((d.config.Term + leaseMargin).Seconds())
		if _, err := d.grant(ctx, client, id, ttl); err != nil {
			return err
		}
		lost := false
		err := watch.wait(ctx, func(other int64) bool {
			lost = lost || other < id
			return other != id && !lost
		})
		if err == nil && !lost {
			// It may have run out while others were waited for.
			if _, err = client.KeepAliveOnce(ctx, clientv3.LeaseID(id)); err == nil {
				d.lease = id
				return nil
			}
		}
		release(ctx, client, id)
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
	}
}

// grant makes a lease under an ID.
func (d *Database) grant(ctx context.Context, client *clientv3.Client, id, ttl int64) (int64, error) {
	answer, err := clientv3.RetryLeaseClient(client).LeaseGrant(ctx, leaseGrant(id, ttl))
	if err != nil {
		return 0, fmt.Errorf("take a lease of the etcd: %w", clientv3.ContextError(ctx, err))
	}
	return answer.TTL, nil
}

// release gives a lease up; if that fails it runs out.
func release(ctx context.Context, client *clientv3.Client, id int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, _ = client.Revoke(ctx, clientv3.LeaseID(id))
}

// ownerWatch watches leases of owners.
type ownerWatch struct {
	client *clientv3.Client
	seen   map[int64]seenLease
}

type seenLease struct {
	first     time.Time
	remaining int64
}

// wait returns when no lease of those that concern the caller is left, or with
// backend.ErrOwned when one is renewed.
func (w *ownerWatch) wait(ctx context.Context, concerns func(id int64) bool) error {
	for {
		list, err := w.client.Leases(ctx)
		if err != nil {
			return fmt.Errorf("list the etcd's leases: %w", err)
		}
		waiting := false
		for _, lease := range list.Leases {
			id := int64(lease.ID)
			if !isOwner(id) || !concerns(id) {
				continue
			}
			alive, err := w.look(ctx, id)
			if err != nil {
				return err
			}
			waiting = waiting || alive
		}
		if !waiting {
			return nil
		}
		select {
		case <-time.After(ownerPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look says whether a lease is still there, and fails if it has been renewed.
func (w *ownerWatch) look(ctx context.Context, id int64) (bool, error) {
	now, err := w.client.TimeToLive(ctx, clientv3.LeaseID(id))
	if err != nil {
		return false, fmt.Errorf("look at the lease of another owner: %w", err)
	}
	if now.TTL < 0 && now.GrantedTTL == 0 {
		return false, nil
	}
	before, known := w.seen[id]
	if !known {
		if w.seen == nil {
			w.seen = map[int64]seenLease{}
		}
		w.seen[id] = seenLease{first: time.Now(), remaining: now.TTL}
		return true, nil
	}
	if now.TTL > before.remaining || time.Since(before.first) > time.Duration(now.GrantedTTL)*time.Second+expirySlack {
		return false, fmt.Errorf("%w (it renews lease %x of the etcd)", backend.ErrOwned, id)
	}
	w.seen[id] = seenLease{first: before.first, remaining: now.TTL}
	return true, nil
}
