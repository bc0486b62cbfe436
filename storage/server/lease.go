package server

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// leaseService answers etcdserverpb.Lease.
type leaseService struct {
	pb.UnsafeLeaseServer
	store    Store
	headers  headers
	stopping <-chan struct{}
}

func (s *leaseService) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	response, err := s.store.LeaseGrant(ctx, r)
	if err != nil {
		return nil, toStatus(err)
	}
	s.headers.fill(response.Header)
	return response, nil
}

func (s *leaseService) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	response, err := s.store.LeaseRevoke(ctx, r)
	if err != nil {
		return nil, toStatus(err)
	}
	s.headers.fill(response.Header)
	return response, nil
}

func (s *leaseService) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	response, err := s.store.LeaseTimeToLive(ctx, r)
	if isLeaseNotFound(err) {
		// An unknown lease is an answer, not an error, in etcd's API.
		header, err := s.currentHeader(ctx)
		if err != nil {
			return nil, err
		}
		return &pb.LeaseTimeToLiveResponse{Header: header, ID: r.ID, TTL: -1}, nil
	}
	if err != nil {
		return nil, toStatus(err)
	}
	s.headers.fill(response.Header)
	return response, nil
}

func (s *leaseService) LeaseLeases(ctx context.Context, r *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	response, err := s.store.LeaseLeases(ctx, r)
	if err != nil {
		return nil, toStatus(err)
	}
	s.headers.fill(response.Header)
	return response, nil
}

func (s *leaseService) currentHeader(ctx context.Context) (*pb.ResponseHeader, error) {
	condition, err := s.store.Status(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return s.headers.at(condition.Revision), nil
}

// LeaseKeepAlive renews a lease for each message of the client. The receiving
// goroutine ends with the stream, which is right after this call.
func (s *leaseService) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	ended := make(chan error, 1)
	go func() { ended <- s.keepAlive(stream) }()
	select {
	case err := <-ended:
		return err
	case <-stream.Context().Done():
		return stream.Context().Err()
	case <-s.stopping:
		return rpctypes.ErrGRPCStopped
	}
}

func (s *leaseService) keepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	ctx := stream.Context()
	for {
		request, err := stream.Recv()
		if isEndOfStream(err) {
			return nil
		}
		if err != nil {
			return err
		}
		// The revision is taken before the lease is renewed: a lease that is
		// revoked at 3 must not be seen alive at 4.
		header, err := s.currentHeader(ctx)
		if err != nil {
			return err
		}
		response, err := s.store.LeaseKeepAlive(ctx, request)
		if isLeaseNotFound(err) {
			response, err = &pb.LeaseKeepAliveResponse{ID: request.ID}, nil
		}
		if err != nil {
			return toStatus(err)
		}
		response.Header = header
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}
