package server

import (
	"context"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// observer counts requests, logs slow ones and checks their metadata.
//
// Clients that ask for a leader ("hasleader" metadata) are always answered:
// there is one member, and a database that can't answer fails the request
// itself, by name.
type observer struct {
	duration *prometheus.HistogramVec
	streams  *prometheus.GaugeVec
	slow     time.Duration
	logger   *slog.Logger
}

func newObserver(options Options) *observer {
	o := &observer{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "taskctl", Subsystem: "storage_server", Name: "request_duration_seconds",
			Help:    "Time from a request's arrival to its answer, by method and gRPC code.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}, []string{"method", "code"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "taskctl", Subsystem: "storage_server", Name: "open_streams",
			Help: "Streams that are open, by method.",
		}, []string{"method"}),
		slow:   options.SlowRequest,
		logger: options.Logger,
	}
	if options.Registerer != nil {
		options.Registerer.MustRegister(o.duration, o.streams)
	}
	return o
}

func (o *observer) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := checkMetadata(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	response, err := handler(ctx, request)
	took := time.Since(start)
	method := methodName(info.FullMethod)
	o.duration.WithLabelValues(method, status.Code(err).String()).Observe(took.Seconds())
	if o.slow > 0 && took > o.slow {
		o.logger.Warn("slow request", "method", method, "key", firstKey(request), "took", took, "error", err)
	}
	return response, err
}

func (o *observer) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := checkMetadata(stream.Context()); err != nil {
		return err
	}
	open := o.streams.WithLabelValues(methodName(info.FullMethod))
	open.Inc()
	defer open.Dec()
	return handler(service, stream)
}

// checkMetadata refuses a client version that is no text, as etcd does.
func checkMetadata(ctx context.Context) error {
	for _, version := range metadata.ValueFromIncomingContext(ctx, rpctypes.MetadataClientAPIVersionKey) {
		if !utf8.ValidString(version) {
			return rpctypes.ErrGRPCInvalidClientAPIVersion
		}
	}
	return nil
}

// methodName is the part of "/etcdserverpb.KV/Range" after the package.
func methodName(full string) string {
	return full[strings.LastIndexByte(full, '.')+1:]
}

// firstKey is the key that a request is about, for the log; never a value.
func firstKey(request any) string {
	switch r := request.(type) {
	case interface{ GetKey() []byte }:
		return string(r.GetKey())
	case *pb.TxnRequest:
		if len(r.Compare) > 0 {
			return string(r.Compare[0].Key)
		}
		for _, op := range append(r.Success[:len(r.Success):len(r.Success)], r.Failure...) {
			for _, keyed := range []interface{ GetKey() []byte }{op.GetRequestPut(), op.GetRequestRange(), op.GetRequestDeleteRange()} {
				if key := keyed.GetKey(); len(key) > 0 {
					return string(key)
				}
			}
		}
	}
	return ""
}
