package cluster_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/taskctl-dev/taskctl/cluster/embedded"
	"github.com/taskctl-dev/taskctl/internal/lifecycle"
	"github.com/taskctl-dev/taskctl/internal/pki"
	"github.com/taskctl-dev/taskctl/storage/etcd"
)

// TestCertificatesAreRenewedWithoutAnInterruption lets certificates of 12
// seconds be renewed twice while a client sends requests all the time.
func TestCertificatesAreRenewedWithoutAnInterruption(t *testing.T) {
	dir := t.TempDir()
	identities, err := pki.Open(filepath.Join(dir, "pki"), pki.Options{Lifetime: 12 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	store := &etcd.Server{Dir: filepath.Join(dir, "etcd"), Socket: filepath.Join(dir, "s")}
	decorated := false
	server := &embedded.APIServer{
		Listener: listener, Storage: store.Endpoint(), PKI: identities,
		WrapCustomResourceStorage: func(getter generic.RESTOptionsGetter) generic.RESTOptionsGetter {
			decorated = true
			return getter
		},
	}
	group, err := lifecycle.New([]lifecycle.Component{
		{Name: "certificates", Run: identities.Run},
		{Name: "storage", Run: store.Run},
		{Name: "apiserver", Needs: []string{"storage", "certificates"}, Run: server.Run},
	}, lifecycle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	restore := embedded.CaptureProcess(t.Output(), func(err error) { group.Fail("apiserver", err) })
	defer restore()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- group.Run(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}

	if !decorated {
		t.Error("the storage of custom resources was not handed to its decorator")
	}

	renewed := make(chan string, 100)
	identities.OnRenew(func(name string) { renewed <- name })
	first := servingSerial(t, identities, listener.Addr().String())
	client := clientFor(t, identities.RESTConfig("https://"+listener.Addr().String(), pki.Operator))
	// The old certificates are invalid after 12 s, the second ones after 20 s.
	for deadline := time.Now().Add(22 * time.Second); time.Now().Before(deadline); {
		if _, err := client.Discovery().ServerVersion(); err != nil {
			t.Fatalf("a request failed: %v", err)
		}
	}
	if servingSerial(t, identities, listener.Addr().String()) == first {
		t.Error("the API server still shows its first certificate")
	}
	count := map[string]int{}
	for len(renewed) > 0 {
		count[<-renewed]++
	}
	if count[string(pki.APIServer)] < 2 || count[string(pki.Operator)] < 2 {
		t.Errorf("renewals: %v, want two of each", count)
	}
	if _, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("the operator's identity may read ConfigMaps without a role")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func servingSerial(t *testing.T, identities *pki.PKI, address string) string {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(identities.CABundle())
	connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0].SerialNumber.String()
}
