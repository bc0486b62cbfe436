package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// toStatus gives a Store's error the code and text that etcd gives it. Errors
// that carry a gRPC status or are etcd's own keep theirs; a cancelled or timed
// out context keeps its meaning; anything else is Unknown, as in etcd.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	var typed rpctypes.EtcdError
	if errors.As(err, &typed) {
		return status.Error(typed.Code(), typed.Error())
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	var carrier interface{ GRPCStatus() *status.Status }
	if errors.As(err, &carrier) {
		return carrier.GRPCStatus().Err()
	}
	return status.Error(codes.Unknown, err.Error())
}

func isLeaseNotFound(err error) bool {
	return errors.Is(err, rpctypes.ErrLeaseNotFound) || errors.Is(err, rpctypes.ErrGRPCLeaseNotFound)
}

// refuse says that a call of etcd's is not offered, and what to use instead.
func refuse(format string, args ...any) error {
	return status.Errorf(codes.Unimplemented, "etcdserver: "+format, args...)
}

func errKeyTooLong(length, limit int) error {
	return status.Error(codes.InvalidArgument,
		fmt.Sprintf("etcdserver: key is too long: %d bytes, at most %d can be stored", length, limit))
}

// isClientGone says whether a stream's error means that the client ended it
// (etcd's isClientCtxErr).
func isClientGone(contextErr, err error) bool {
	if contextErr != nil {
		return true
	}
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded:
		return true
	case codes.Unavailable:
		text := status.Convert(err).Message()
		return text == "client disconnected" ||
			strings.HasPrefix(text, "stream error: ") && strings.HasSuffix(text, "; CANCEL")
	}
	return false
}
