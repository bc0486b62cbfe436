package server_test

import (
	"bytes"
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/storage/storagetest"
)

// TestRefusals asks for what is not offered or too large; each answer has
// etcd's code and text where etcd has one.
func TestRefusals(t *testing.T) {
	endpoint, stopEtcd := storagetest.StartEtcd(t, t.TempDir())
	t.Cleanup(stopEtcd)
	address, stop := serveStore(t, newEtcdStore(t, endpoint), server.Options{}, "http://127.0.0.1:0", server.TLSFiles{})
	t.Cleanup(stop)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	kv, maintenance := pb.NewKVClient(conn), pb.NewMaintenanceClient(conn)
	members, auth := pb.NewClusterClient(conn), pb.NewAuthClient(conn)
	put := func(key, value []byte) error {
		_, err := kv.Put(t.Context(), &pb.PutRequest{Key: key, Value: value})
		return err
	}
	many := make([]*pb.RequestOp, 129)
	for i := range many {
		many[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("k")}}}
	}
	everything := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("a"), RangeEnd: []byte{0}},
	}}
	onePut := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("k")}}}

	tests := []struct {
		name string
		do   func() error
		code codes.Code
		text string
	}{
		{"value of 1.5 MiB", func() error { return put([]byte("k"), make([]byte, 1536*1024)) },
			codes.InvalidArgument, "etcdserver: request is too large"},
		{"value of 3 MiB", func() error { return put([]byte("k"), make([]byte, 3<<20)) }, codes.ResourceExhausted, ""},
		{"key of 2,049 bytes", func() error { return put(bytes.Repeat([]byte("k"), 2049), nil) },
			codes.InvalidArgument, "etcdserver: key is too long: 2049 bytes, at most 2048 can be stored"},
		{"key of 2,048 bytes", func() error { return put(bytes.Repeat([]byte("k"), 2048), nil) }, codes.OK, ""},
		{"129 operations", func() error {
			_, err := kv.Txn(t.Context(), &pb.TxnRequest{Success: many})
			return err
		}, codes.InvalidArgument, "etcdserver: too many operations in txn request"},
		{"put and delete from a key on", func() error {
			_, err := kv.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{onePut, everything}})
			return err
		}, codes.InvalidArgument, "etcdserver: duplicate key given in txn request"},
		{"requiring a leader", func() error {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "hasleader", "true")
			_, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte("k")})
			return err
		}, codes.OK, ""},
		{"snapshot", func() error {
			stream, err := maintenance.Snapshot(t.Context(), &pb.SnapshotRequest{})
			if err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		}, codes.Unimplemented, "etcdserver: this store is not an etcd database file, use `taskctl storage backup FILE` instead of a snapshot"},
		{"moving the leader", func() error {
			_, err := maintenance.MoveLeader(t.Context(), &pb.MoveLeaderRequest{TargetID: 1})
			return err
		}, codes.FailedPrecondition, "etcdserver: bad leader transferee"},
		{"downgrade", func() error {
			_, err := maintenance.Downgrade(t.Context(), &pb.DowngradeRequest{Version: "3.6.0"})
			return err
		}, codes.InvalidArgument, "etcdserver: invalid downgrade target version"},
		{"adding a member", func() error {
			_, err := members.MemberAdd(t.Context(), &pb.MemberAddRequest{})
			return err
		}, codes.Unimplemented, "etcdserver: members can't be added: replication is the database's"},
		{"authenticating", func() error {
			_, err := auth.Authenticate(t.Context(), &pb.AuthenticateRequest{Name: "root"})
			return err
		}, codes.FailedPrecondition, "etcdserver: authentication is not enabled"},
		{"listing members", func() error {
			r, err := members.MemberList(t.Context(), &pb.MemberListRequest{})
			if err == nil && len(r.Members) != 1 {
				t.Errorf("the members are %v", r.Members)
			}
			return err
		}, codes.OK, ""},
		{"listing alarms", func() error {
			_, err := maintenance.Alarm(t.Context(), &pb.AlarmRequest{})
			return err
		}, codes.OK, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := status.Convert(test.do())
			if got.Code() != test.code || test.text != "" && got.Message() != test.text {
				t.Errorf("answered %s %q, want %s %q", got.Code(), got.Message(), test.code, test.text)
			}
		})
	}
}

// TestStatusIsWhatKubernetesLooksFor: from 3.5.13 on consistent reads are
// answered from kube-apiserver's cache.
func TestStatusIsWhatKubernetesLooksFor(t *testing.T) {
	endpoint, stopEtcd := storagetest.StartEtcd(t, t.TempDir())
	t.Cleanup(stopEtcd)
	address, stop := serveStore(t, newEtcdStore(t, endpoint), server.Options{}, "http://127.0.0.1:0", server.TLSFiles{})
	t.Cleanup(stop)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r, err := pb.NewMaintenanceClient(conn).Status(context.Background(), &pb.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != "3.7.3" || r.Leader != r.Header.MemberId || r.DbSize == 0 || r.DbSizeInUse == 0 || len(r.Errors) != 0 {
		t.Errorf("status is %v", r)
	}
}
