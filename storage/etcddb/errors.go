package etcddb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

func leaseGrant(id, ttl int64) *pb.LeaseGrantRequest {
	return &pb.LeaseGrantRequest{ID: id, TTL: ttl}
}

// explain makes one line of an error of etcd's client, with what to do where
// that is known.
func explain(err error) error {
	if err == nil {
		return nil
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	switch {
	case errors.Is(err, backend.ErrOwned), errors.Is(err, backend.ErrFenced):
		return err
	case strings.Contains(text, "authentication handshake failed"), strings.Contains(text, "x509:"):
		return fmt.Errorf("%w; check the certificates of the etcd's configuration", err)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w; compact and defragment the etcd, raise its quota, and disarm its alarm", err)
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrUserEmpty):
		return fmt.Errorf("%w; the etcd's user needs the root role", err)
	}
	switch code := status.Code(err); {
	case errors.Is(err, context.DeadlineExceeded), code == codes.DeadlineExceeded, code == codes.Unavailable:
		return fmt.Errorf("%w: %w", backend.ErrUnreachable, err)
	}
	return err
}

// refused says whether etcd has refused a transaction before doing any of it,
// so that it is certainly not stored.
func refused(err error) (rejected *backend.Rejected, certain bool) {
	for _, known := range []error{
		rpctypes.ErrNoSpace, rpctypes.ErrRequestTooLarge, rpctypes.ErrTooManyOps, rpctypes.ErrDuplicateKey,
		rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision,
	} {
		if errors.Is(err, known) {
			return &backend.Rejected{Err: explain(err)}, true
		}
	}
	if errors.Is(err, rpctypes.ErrTooManyRequests) {
		return &backend.Rejected{Err: err, Retry: true}, true
	}
	if code := status.Code(err); code == codes.ResourceExhausted || code == codes.InvalidArgument {
		return &backend.Rejected{Err: explain(err)}, true
	}
	return nil, false
}
