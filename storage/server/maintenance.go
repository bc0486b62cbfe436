package server

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"
)

// storageVersion is the version of etcd whose API is served, without its
// patch level, as etcd reports its storage and cluster versions.
const storageVersion = "3.7.0"

// maintenanceService answers etcdserverpb.Maintenance.
type maintenanceService struct {
	pb.UnsafeMaintenanceServer
	store   Store
	headers headers
}

// Status reports etcd's version, since clients decide by it what they may ask:
// from 3.5.13 on kube-apiserver answers consistent reads from its watch cache.
// Without raft its index is the newest revision. There is no quota.
func (s *maintenanceService) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	condition, err := s.store.Status(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.StatusResponse{
		Header:           s.headers.at(condition.Revision),
		Version:          version.Version,
		StorageVersion:   storageVersion,
		DbSize:           condition.Size,
		DbSizeInUse:      condition.SizeInUse,
		Leader:           s.headers.memberID,
		RaftIndex:        uint64(condition.Revision),
		RaftAppliedIndex: uint64(condition.Revision),
		RaftTerm:         raftTerm,
		Errors:           condition.Errors,
		DowngradeInfo:    &pb.DowngradeInfo{},
	}, nil
}

// Alarm lists no alarms: there is neither a quota nor a replica that could
// differ. Trouble of a database is in Status.
func (s *maintenanceService) Alarm(ctx context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	if r.Action == pb.AlarmRequest_ACTIVATE {
		return nil, refuse("alarms can't be raised by clients here")
	}
	condition, err := s.store.Status(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.AlarmResponse{Header: s.headers.at(condition.Revision)}, nil
}

func (s *maintenanceService) Defragment(ctx context.Context, _ *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	if err := s.store.Defragment(ctx); err != nil {
		return nil, toStatus(err)
	}
	return &pb.DefragmentResponse{}, nil
}

func (s *maintenanceService) HashKV(ctx context.Context, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	hash, hashRevision, compactRevision, err := s.store.HashKV(ctx, r.Revision)
	if err != nil {
		return nil, toStatus(err)
	}
	condition, err := s.store.Status(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.HashKVResponse{
		Header:          s.headers.at(condition.Revision),
		Hash:            hash,
		HashRevision:    hashRevision,
		CompactRevision: compactRevision,
	}, nil
}

// Hash is refused: etcd's is over the pages of its database file.
func (s *maintenanceService) Hash(context.Context, *pb.HashRequest) (*pb.HashResponse, error) {
	return nil, refuse("there is no file to hash here, use HashKV (etcdctl endpoint hashkv)")
}

// Snapshot is refused: a snapshot is a bbolt file, and there is none.
func (s *maintenanceService) Snapshot(*pb.SnapshotRequest, pb.Maintenance_SnapshotServer) error {
	return refuse("this store is not an etcd database file, use `taskctl storage backup FILE` instead of a snapshot")
}

func (s *maintenanceService) MoveLeader(_ context.Context, r *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	if r.TargetID == s.headers.memberID {
		return &pb.MoveLeaderResponse{}, nil // it already is the leader
	}
	return nil, rpctypes.ErrGRPCBadLeaderTransferee
}

func (s *maintenanceService) Downgrade(_ context.Context, r *pb.DowngradeRequest) (*pb.DowngradeResponse, error) {
	if r.Action == pb.DowngradeRequest_CANCEL {
		return nil, rpctypes.ErrGRPCNoInflightDowngrade
	}
	return nil, rpctypes.ErrGRPCInvalidDowngradeTargetVersion
}
