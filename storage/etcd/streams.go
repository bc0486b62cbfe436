package etcd

import (
	"context"

	"google.golang.org/grpc"
)

// streams ends clients' watches when the server stops. etcd itself waits five
// seconds for them to end.
type streams struct {
	stopping context.Context
}

func (s *streams) intercept(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	return handler(service, &stoppableStream{ServerStream: stream, ctx: ctx})
}

// stoppableStream is a stream whose context also ends when the server stops.
type stoppableStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *stoppableStream) Context() context.Context { return s.ctx }
