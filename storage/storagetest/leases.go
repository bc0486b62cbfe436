package storagetest

import (
	"bytes"
	"context"
	"slices"
	"sort"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// leaseTTL is long enough, in seconds, that no lease expires during a run:
// when one does is up to each side's clock.
const leaseTTL = 5000

// leaseOperation grants, revokes, renews, asks about or lists leases.
func (d *differential) leaseOperation() {
	g := d.gen
	switch g.random.IntN(6) {
	case 0, 1:
		d.grant()
	case 2:
		d.revoke()
	case 3:
		r := &pb.LeaseTimeToLiveRequest{ID: g.lease(), Keys: g.chance(70)}
		d.both("lease ttl", r, func(ctx context.Context, s *side) (proto.Message, error) {
			response, err := s.lease.LeaseTimeToLive(ctx, r)
			if err != nil {
				return nil, err
			}
			// Keys come in no order, and the sides may differ by a second or more.
			slices.SortFunc(response.Keys, bytes.Compare)
			if response.TTL > leaseTTL-600 && response.TTL <= leaseTTL {
				response.TTL = leaseTTL
			}
			return response, nil
		})
	case 4:
		r := &pb.LeaseLeasesRequest{}
		d.both("leases", r, func(ctx context.Context, s *side) (proto.Message, error) {
			response, err := s.lease.LeaseLeases(ctx, r)
			if err != nil {
				return nil, err
			}
			sort.Slice(response.Leases, func(i, j int) bool { return response.Leases[i].ID < response.Leases[j].ID })
			return response, nil
		})
	case 5:
		r := &pb.LeaseKeepAliveRequest{ID: g.lease()}
		d.both("keep alive", r, func(ctx context.Context, s *side) (proto.Message, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			stream, err := s.lease.LeaseKeepAlive(ctx)
			if err != nil {
				return nil, err
			}
			if err := stream.Send(r); err != nil {
				return nil, err
			}
			return stream.Recv()
		})
	}
}

func (d *differential) grant() {
	g := d.gen
	g.nextID++
	r := &pb.LeaseGrantRequest{ID: 1000 + g.nextID, TTL: leaseTTL}
	switch {
	case g.chance(10) && len(g.leases) > 0:
		r.ID = pick(g, g.leases...) // exists
	case g.chance(5):
		r.TTL = 9_000_000_001 // too large
	}
	a := d.both("grant", r, func(ctx context.Context, s *side) (proto.Message, error) { return s.lease.LeaseGrant(ctx, r) })
	if a.err == nil {
		g.leases = append(g.leases, r.ID)
	}
}

func (d *differential) revoke() {
	r := &pb.LeaseRevokeRequest{ID: d.gen.lease()}
	d.both("revoke", r, func(ctx context.Context, s *side) (proto.Message, error) { return s.lease.LeaseRevoke(ctx, r) })
	d.gen.leases = slices.DeleteFunc(d.gen.leases, func(id int64) bool { return id == r.ID })
}
