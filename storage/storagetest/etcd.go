package storagetest

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// EtcdOption changes the configuration of [StartEtcd].
type EtcdOption func(*embed.Config)

// WithProgressInterval sets how often etcd tells watches their progress.
func WithProgressInterval(interval time.Duration) EtcdOption {
	return func(c *embed.Config) { c.WatchProgressNotifyInterval = interval }
}

// StartEtcd starts an embedded etcd over dir on a free port and returns its
// endpoint, and a function that stops it and waits for its end. It does not
// sync to disk: nothing here ends it by force.
func StartEtcd(tb testing.TB, dir string, options ...EtcdOption) (endpoint string, stop func()) {
	tb.Helper()
	config := embed.NewConfig()
	config.Dir = dir
	config.UnsafeNoFsync = true
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	for _, option := range options {
		option(config)
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		tb.Fatalf("start etcd: %v", err)
	}
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		tb.Fatalf("etcd ended: %v", err)
	case <-time.After(30 * time.Second):
		server.Close()
		tb.Fatalf("etcd is not ready after 30 s")
	}
	return fmt.Sprintf("http://%s", server.Clients[0].Addr()), func() {
		server.Close()
		<-server.Server.StopNotify()
	}
}
