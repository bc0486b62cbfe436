package server

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// clusterService answers etcdserverpb.Cluster: a cluster of one member whose
// replication, if any, is the database's.
type clusterService struct {
	pb.UnsafeClusterServer
	headers headers
	member  *pb.Member
}

func (s *clusterService) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: s.headers.at(0), Members: []*pb.Member{s.member}}, nil
}

func (s *clusterService) MemberAdd(context.Context, *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	return nil, refuse("members can't be added: replication is the database's")
}

func (s *clusterService) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	if r.ID != s.member.ID {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	return nil, rpctypes.ErrGRPCMemberNotEnoughStarted
}

func (s *clusterService) MemberUpdate(_ context.Context, r *pb.MemberUpdateRequest) (*pb.MemberUpdateResponse, error) {
	if r.ID != s.member.ID {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	return nil, refuse("the member has no peer URLs to update")
}

func (s *clusterService) MemberPromote(_ context.Context, r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	if r.ID != s.member.ID {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	return nil, rpctypes.ErrGRPCMemberNotLearner
}
