package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/storage/storagetest"
)

// TestEveryKindOfListenerServesEtcdsClient puts a value over each transport.
func TestEveryKindOfListenerServesEtcdsClient(t *testing.T) {
	endpoint, stopEtcd := storagetest.StartEtcd(t, t.TempDir())
	t.Cleanup(stopEtcd)
	certs := newCertificates(t)
	serverFiles := server.TLSFiles{CertFile: certs.path("server.crt"), KeyFile: certs.path("server.key")}
	mutual := serverFiles
	mutual.ClientCAFile = certs.path("ca.crt")
	socket := filepath.Join(shortTempDir(t), "s.sock")
	trusting := &tls.Config{RootCAs: certs.pool}
	known := &tls.Config{RootCAs: certs.pool, Certificates: []tls.Certificate{certs.client}}
	tests := []struct {
		name, url string
		files     server.TLSFiles
		tls       *tls.Config
		refused   bool
	}{
		{name: "plain", url: "http://127.0.0.1:0"},
		{name: "TLS", url: "https://127.0.0.1:0", files: serverFiles, tls: trusting},
		{name: "mutual TLS", url: "https://127.0.0.1:0", files: mutual, tls: known},
		{name: "mutual TLS without a certificate", url: "https://127.0.0.1:0", files: mutual, tls: trusting, refused: true},
		{name: "TLS that the client does not trust", url: "https://127.0.0.1:0", files: serverFiles, tls: &tls.Config{}, refused: true},
		{name: "unix socket", url: "unix://" + socket},
		{name: "unix socket that a killed process left", url: "unix://" + socket},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if strings.HasSuffix(test.name, "left") {
				abandonSocket(t, socket)
			}
			address, stop := serveStore(t, newEtcdStore(t, endpoint), server.Options{}, test.url, test.files)
			t.Cleanup(stop)
			url := test.url
			if !strings.HasPrefix(url, "unix") {
				url = strings.Replace(url, "127.0.0.1:0", address, 1)
			}
			client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, TLS: test.tls, Logger: zap.NewNop()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			timeout := 20 * time.Second
			if test.refused {
				timeout = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err = client.Put(ctx, "key", test.name)
			if (err != nil) != test.refused {
				t.Errorf("put over %s: error %v, want refused %t", url, err, test.refused)
			}
		})
	}
}

func TestHTTPPathsAreServedBesideGRPC(t *testing.T) {
	endpoint, stopEtcd := storagetest.StartEtcd(t, t.TempDir())
	t.Cleanup(stopEtcd)
	registry := prometheus.NewRegistry()
	options := server.Options{Registerer: registry, Gatherer: registry}
	address, stop := serveStore(t, newEtcdStore(t, endpoint), options, "http://127.0.0.1:0", server.TLSFiles{})
	t.Cleanup(stop)

	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	health, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || health.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the health service said %v, %v", health, err)
	}
	for path, want := range map[string]string{
		"/health":  `{"health":"true","reason":""}`,
		"/version": `{"etcdserver":"3.7.3","etcdcluster":"3.7.0","storage":"3.7.0"}`,
		"/readyz":  "ok",
		"/livez":   "ok",
		"/metrics": `taskctl_storage_server_request_duration_seconds_count{code="OK",method="Health/Check"} 1`,
	} {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s answered %d %s (%v), want %s", path, response.StatusCode, body, err, want)
		}
	}
}

// TestTheStopDoesNotWaitForIdleConnections opens what could hold a stop up: a
// connection that says nothing, a watch, and a keep-alive.
func TestTheStopDoesNotWaitForIdleConnections(t *testing.T) {
	endpoint, stopEtcd := storagetest.StartEtcd(t, t.TempDir())
	t.Cleanup(stopEtcd)
	address, stop := serveStore(t, newEtcdStore(t, endpoint), server.Options{StopGrace: time.Minute}, "http://127.0.0.1:0", server.TLSFiles{})
	silent, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + address}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	watching := client.Watch(t.Context(), "key", clientv3.WithCreatedNotify())
	<-watching
	lease, err := client.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	alive, err := client.KeepAlive(t.Context(), lease.ID)
	if err != nil {
		t.Fatal(err)
	}
	<-alive
	start := time.Now()
	stop()
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

func TestListenersThatMakeNoSenseAreRefused(t *testing.T) {
	dir := shortTempDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := server.Listen("unix://"+filepath.Join(dir, "taken"), server.TLSFiles{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	tests := []struct {
		url   string
		files server.TLSFiles
		want  string
	}{
		{"https://127.0.0.1:0", server.TLSFiles{}, "needs a certificate"},
		{"http://127.0.0.1:0", server.TLSFiles{CertFile: "x"}, "only https uses one"},
		{"http://127.0.0.1", server.TLSFiles{}, "HOST:PORT"},
		{"http://127.0.0.1:0/path", server.TLSFiles{}, "HOST:PORT"},
		{"ftp://127.0.0.1:0", server.TLSFiles{}, "must be"},
		{"https://127.0.0.1:0", server.TLSFiles{CertFile: file, KeyFile: file}, "load the server's certificate"},
		{"unix://" + file, server.TLSFiles{}, "is no socket"},
		{"unix://" + filepath.Join(dir, "taken"), server.TLSFiles{}, "another process serves"},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			listener, err := server.Listen(test.url, test.files)
			if err == nil {
				_ = listener.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("listen on %s: %v, want %q", test.url, err, test.want)
			}
		})
	}
}

// abandonSocket leaves a socket file behind as a killed process does.
func abandonSocket(t *testing.T, path string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

// shortTempDir is one whose sockets' paths stay below 107 bytes.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

type certificates struct {
	dir    string
	pool   *x509.CertPool
	client tls.Certificate
}

func (c certificates) path(name string) string { return filepath.Join(c.dir, name) }
