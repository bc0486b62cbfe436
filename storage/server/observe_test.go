package server

import (
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/metadata"
)

// grpc-go's client refuses such metadata itself, others need not.
func TestAClientVersionThatIsNoTextIsRefused(t *testing.T) {
	for version, want := range map[string]error{"3.7": nil, "\xff": rpctypes.ErrGRPCInvalidClientAPIVersion} {
		ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("client-api-version", version))
		if err := checkMetadata(ctx); !errors.Is(err, want) {
			t.Errorf("version %q: %v, want %v", version, err, want)
		}
	}
}

func TestTheLogOfSlowRequestsNamesTheKeyAndNeverAValue(t *testing.T) {
	put := &pb.PutRequest{Key: []byte("key"), Value: []byte("secret")}
	op := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}}
	requests := map[string]any{
		"put":              put,
		"txn of a put":     &pb.TxnRequest{Success: []*pb.RequestOp{op}},
		"txn of a failure": &pb.TxnRequest{Failure: []*pb.RequestOp{op}},
		"txn with compare": &pb.TxnRequest{Compare: []*pb.Compare{{
			Key: []byte("key"), TargetUnion: &pb.Compare_Value{Value: []byte("secret")},
		}}},
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			if got := firstKey(request); got != "key" {
				t.Errorf("the log would name %q, want key", got)
			}
		})
	}
}
