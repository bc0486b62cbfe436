package etcd

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
)

// memberName and peerURL stand in the member list of a new store. Nobody ever
// dials the peer URL: there is one member and no peer listener.
const (
	memberName = "taskctl"
	peerURL    = "http://127.0.0.1:2380"
)

// A single member is its own quorum: there is nobody whose late heartbeat an
// election would have to wait for. Short ticks let it elect itself in 50 to
// 250 ms after a start instead of 100 to 1,000 ms; shorter ones cost too much
// when nothing happens, a tenth of a percent of a core for each halving.
const (
	tickMillis     = 50
	electionMillis = 250
)

// config is etcd's own default configuration but for what is set here.
// Compaction stays off: kube-apiserver compacts every five minutes. Syncing
// stays on: what is acknowledged has to be durable.
func (s *Server) config(fatal *fatalHook, streams *streams) (*embed.Config, error) {
	peer, err := url.Parse(peerURL)
	if err != nil {
		return nil, err
	}
	socket, err := filepath.Abs(s.Socket)
	if err != nil {
		return nil, err
	}
	client := url.URL{Scheme: "unix", Path: socket}

	config := embed.NewConfig()
	config.Name = memberName
	config.Dir = s.Dir
	config.ListenPeerUrls = nil
	config.AdvertisePeerUrls = []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(memberName)
	config.ListenClientUrls = []url.URL{client}
	config.AdvertiseClientUrls = []url.URL{client}
	config.TickMs = tickMillis
	config.ElectionMs = electionMillis
	config.QuotaBackendBytes = s.QuotaBytes
	if config.QuotaBackendBytes == 0 {
		config.QuotaBackendBytes = DefaultQuotaBytes
	}
	if s.MaxRequestBytes != 0 {
		config.MaxRequestBytes = s.MaxRequestBytes
	}
	// The JSON gateway would be one more client connection to our own socket.
	config.EnableGRPCGateway = false
	config.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainStreamInterceptor(streams.intercept)}
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(s.logger(fatal))
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return config, nil
}

func (s *Server) logger(fatal *fatalHook) *zap.Logger {
	log := s.Log
	if log == nil {
		log = io.Discard
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.ISO8601TimeEncoder
	sink := zapcore.Lock(zapcore.AddSync(log))
	core := zapcore.NewCore(zapcore.NewJSONEncoder(encoder), sink, zap.InfoLevel)
	return zap.New(core, zap.AddCaller(), zap.ErrorOutput(sink), zap.WithFatalHook(fatal), zap.WithPanicHook(fatal))
}
