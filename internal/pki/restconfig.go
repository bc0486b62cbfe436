package pki

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// RESTConfig is how a client with that identity reaches an API server that
// shows [APIServer]'s certificate. host is https://ADDRESS:PORT.
//
// QPS is unlimited: the API server's own priority and fairness protects it.
//
// The certificate is given by a transport of ours and not by CertFile and
// KeyFile: client-go looks at such files every five minutes only, and when it
// finds new ones it closes every connection under the requests that are using
// it. Ours takes new requests to new connections and lets the old ones finish.
func (p *PKI) RESTConfig(host string, id Client) *rest.Config {
	return &rest.Config{
		Host:            host,
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: p.CAFile()},
		WrapTransport:   func(http.RoundTripper) http.RoundTripper { return p.transport(id) },
	}
}

// transport is an [http.RoundTripper] for one identity. All clients with that
// identity share it, and so its connections.
type transport struct {
	current atomic.Pointer[http.Transport]
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current.Load().RoundTrip(r)
}

// CloseIdleConnections is what [http.Client.CloseIdleConnections] looks for.
func (t *transport) CloseIdleConnections() { t.current.Load().CloseIdleConnections() }

func (p *PKI) transport(id Client) *transport {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.transports[id]
	if !ok {
		t = &transport{}
		t.current.Store(p.newTransport(id))
		p.transports[id] = t
	}
	return t
}

// newTransport must be called with mu held.
func (p *PKI) newTransport(id Client) *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return utilnet.SetTransportDefaults(&http.Transport{
		// As client-go's own transport, apart from the certificates.
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
		DialContext:         dialer.DialContext,
		TLSClientConfig: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			RootCAs:      p.authorities[clusterAuthority].pool(),
			Certificates: []tls.Certificate{*p.leaves[string(id)].tls()},
		},
	})
}

// rotateTransports makes every new request use the current certificates. A
// connection of before is closed when its last request or watch has ended.
func (p *PKI) rotateTransports() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, t := range p.transports {
		t.current.Swap(p.newTransport(id)).CloseIdleConnections()
	}
}

func (p *PKI) closeIdleConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.transports {
		t.CloseIdleConnections()
	}
}
