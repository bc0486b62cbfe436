package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// serveEtcd is the hidden command with which this program starts itself as an
// embedded etcd.
const serveEtcd = "serve-embedded-etcd"

// runEtcd serves an embedded etcd with its default, durable settings; target
// is DIR|HOST:PORT. No quota stops it from being filled with a million keys.
func runEtcd(target string) error {
	dir, address, _ := strings.Cut(target, "|")
	config := embed.NewConfig()
	config.Dir = dir + "/etcd"
	config.QuotaBackendBytes = 16 << 30
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	clients := []url.URL{{Scheme: "http", Host: address}}
	peers := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls = clients, clients
	config.ListenPeerUrls, config.AdvertisePeerUrls = peers, peers
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	defer server.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	select {
	case <-signals:
		return nil
	case err := <-server.Err():
		return err
	}
}
