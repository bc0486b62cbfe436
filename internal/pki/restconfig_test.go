package pki

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestARenewalLeavesRequestsAloneAndNewOnesUseTheNewCertificate(t *testing.T) {
	now := time.Now()
	p := open(t, t.TempDir(), Options{Lifetime: 6 * time.Minute, now: func() time.Time { return now }})
	entered, release := make(chan struct{}), make(chan struct{})
	// The server answers with the serial number of the client's certificate.
	url := serve(t, p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(entered)
			<-release
		}
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].SerialNumber.String())
	}))
	client, err := rest.HTTPClientFor(p.RESTConfig(url, Operator))
	if err != nil {
		t.Fatal(err)
	}

	first := p.leaves[string(Operator)].certificate.SerialNumber.String()
	slow := make(chan string, 1)
	go func() { slow <- get(t, client, url+"/slow") }()
	select {
	case <-entered:
	case <-slow:
		t.FailNow()
	}
	// Due, and by the real clock the new certificate is valid already.
	now = now.Add(backdate - 30*time.Second)
	p.renew()
	second := p.leaves[string(Operator)].certificate.SerialNumber.String()
	if first == second {
		t.Fatal("the certificate was not renewed")
	}
	if got := get(t, client, url+"/"); got != second {
		t.Errorf("a new request came with certificate %s, want %s", got, second)
	}
	close(release)
	if got := <-slow; got != first {
		t.Errorf("the request that ran during the renewal got %q, want %s", got, first)
	}
	client.CloseIdleConnections()
}

// serve answers on a loopback port, with the API server's certificate and only
// for clients that show one.
func serve(t *testing.T, p *PKI, handler http.Handler) (url string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, TLSConfig: &tls.Config{
		GetCertificate: p.GetCertificate(APIServer),
		ClientAuth:     tls.RequireAndVerifyClientCert,
		ClientCAs:      p.authorities[clusterAuthority].pool(),
	}}
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "https://" + listener.Addr().String()
}

func get(t *testing.T, client *http.Client, url string) string {
	response, err := client.Get(url)
	if err != nil {
		t.Errorf("GET %s: %v", url, err)
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("GET %s: %v", url, err)
	}
	return string(body)
}
