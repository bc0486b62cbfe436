package server

import (
	"context"
	"math"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// Server serves the etcd v3 API of one [Store]. It does not own the store:
// whoever opened it closes it, after Serve returned.
type Server struct {
	store    Store
	options  Options
	grpc     *grpc.Server
	health   *health.Server
	stopping chan struct{} // closed when streams have to end
	stopOnce sync.Once
}

// New makes a Server. Nothing runs until [Server.Serve].
func New(store Store, options Options) *Server {
	options = options.withDefaults()
	s := &Server{
		store:    store,
		options:  options,
		health:   health.NewServer(),
		stopping: make(chan struct{}),
	}
	observer := newObserver(options)
	s.grpc = grpc.NewServer(
		grpc.UnaryInterceptor(observer.unary),
		grpc.StreamInterceptor(observer.stream),
		grpc.MaxRecvMsgSize(options.maxMessageBytes()),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(math.MaxUint32),
		// Fixed windows save the bandwidth estimator's pings; these are large
		// enough for a page of a list or a burst of events on one machine.
		grpc.InitialWindowSize(1<<20),
		grpc.InitialConnWindowSize(4<<20),
		grpc.ReadBufferSize(64<<10),
		grpc.WriteBufferSize(64<<10),
		// Goroutines that are kept have grown their stacks already, which is
		// a tenth of a write's time in a profile; more are made when all wait.
		grpc.NumStreamWorkers(64),
		// etcd's numbers (embed.DefaultGRPCKeepAlive…), except that pings of
		// idle connections are allowed.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 2 * time.Hour, Timeout: 20 * time.Second}),
	)
	s.register()
	return s
}

func (s *Server) register() {
	headers := headers{clusterID: s.options.ClusterID, memberID: s.options.MemberID}
	pb.RegisterKVServer(s.grpc, &kvService{store: s.store, headers: headers, limits: limits{
		requestBytes: s.options.MaxRequestBytes,
		txnOps:       s.options.MaxTxnOps,
		keyBytes:     s.options.MaxKeyBytes,
	}})
	pb.RegisterWatchServer(s.grpc, &watchService{
		store: s.store, headers: headers, options: s.options, stopping: s.stopping, logger: s.options.Logger,
	})
	pb.RegisterLeaseServer(s.grpc, &leaseService{store: s.store, headers: headers, stopping: s.stopping})
	pb.RegisterMaintenanceServer(s.grpc, &maintenanceService{store: s.store, headers: headers})
	pb.RegisterClusterServer(s.grpc, &clusterService{headers: headers, member: &pb.Member{
		ID:         s.options.MemberID,
		Name:       s.options.MemberName,
		ClientURLs: s.options.ClientURLs,
	}})
	pb.RegisterAuthServer(s.grpc, &authService{headers: headers})
	healthpb.RegisterHealthServer(s.grpc, s.health)
}

// check answers whether a linearizable read of the store is answered, which
// is what etcd's /health asks.
func (s *Server) check(ctx context.Context) error {
	_, err := s.store.Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true, Limit: 1})
	return err
}

// endStreams tells watches and keep-alives to end with an error after which
// etcd's client tries again elsewhere or later.
func (s *Server) endStreams() { s.stopOnce.Do(func() { close(s.stopping) }) }
