package server

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// authService answers etcdserverpb.Auth as an etcd without users and without
// authentication does. Who may connect is decided by TLS client certificates or
// the socket's permissions; users and roles can't be made, which the embedded
// server says as Unimplemented.
type authService struct {
	pb.UnimplementedAuthServer
	headers headers
}

func (s *authService) AuthStatus(context.Context, *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	return &pb.AuthStatusResponse{Header: s.headers.at(0), AuthRevision: 1}, nil
}

func (s *authService) AuthEnable(context.Context, *pb.AuthEnableRequest) (*pb.AuthEnableResponse, error) {
	return nil, rpctypes.ErrGRPCRootUserNotExist
}

func (s *authService) AuthDisable(context.Context, *pb.AuthDisableRequest) (*pb.AuthDisableResponse, error) {
	return &pb.AuthDisableResponse{Header: s.headers.at(0)}, nil
}

func (s *authService) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	return nil, rpctypes.ErrGRPCAuthNotEnabled
}

func (s *authService) UserList(context.Context, *pb.AuthUserListRequest) (*pb.AuthUserListResponse, error) {
	return &pb.AuthUserListResponse{Header: s.headers.at(0)}, nil
}

func (s *authService) UserGet(context.Context, *pb.AuthUserGetRequest) (*pb.AuthUserGetResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

func (s *authService) UserDelete(context.Context, *pb.AuthUserDeleteRequest) (*pb.AuthUserDeleteResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

func (s *authService) RoleList(context.Context, *pb.AuthRoleListRequest) (*pb.AuthRoleListResponse, error) {
	return &pb.AuthRoleListResponse{Header: s.headers.at(0)}, nil
}

func (s *authService) RoleGet(context.Context, *pb.AuthRoleGetRequest) (*pb.AuthRoleGetResponse, error) {
	return nil, rpctypes.ErrGRPCRoleNotFound
}

func (s *authService) RoleDelete(context.Context, *pb.AuthRoleDeleteRequest) (*pb.AuthRoleDeleteResponse, error) {
	return nil, rpctypes.ErrGRPCRoleNotFound
}
