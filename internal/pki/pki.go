package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Options are optional all.
type Options struct {
	// Lifetime of servers' and clients' certificates; default 365 days. They
	// are renewed at two thirds of it.
	Lifetime time.Duration
	// AuthorityLifetime of the two authorities' certificates; default 10
	// years. They are renewed at two thirds of it, with the same key.
	AuthorityLifetime time.Duration
	// ExtraNames are more DNS names and IP addresses for a server.
	ExtraNames map[Serving][]string
	// Log is told of renewals and of failed ones; default none.
	Log *slog.Logger

	// now replaces the clock in tests.
	now func() time.Time
}

// Files are the paths of a certificate and its private key, both PEM.
type Files struct {
	Cert, Key string
}

// PKI is one folder of keys and certificates. Its methods may be called from
// several goroutines.
type PKI struct {
	dir     string
	options Options

	mu          sync.Mutex
	authorities map[string]*authority
	leaves      map[string]*leaf
	onRenew     []func(name string)
	transports  map[Client]*transport
}

const (
	clusterAuthority    = "ca"
	frontProxyAuthority = "front-proxy-ca"
	serviceAccountKey   = "sa.key"

	serviceAccountPublicKey = "sa.pub"
)

// Open reads the folder, and makes what is missing in it: the folder itself
// (mode 0700), authorities, keys and certificates (mode 0600). Certificates
// that have expired, that are due, or that were made for other names are
// replaced. A file that can't be parsed is an error that names it.
func Open(dir string, options Options) (*PKI, error) {
	if options.Lifetime == 0 {
		options.Lifetime = 365 * 24 * time.Hour
	}
	if options.AuthorityLifetime == 0 {
		options.AuthorityLifetime = 10 * 365 * 24 * time.Hour
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.now == nil {
		options.now = time.Now
	}
	p := &PKI{
		dir:         dir,
		options:     options,
		authorities: map[string]*authority{},
		leaves:      map[string]*leaf{},
		transports:  map[Client]*transport{},
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of certificates: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("protect the folder of certificates: %w", err)
	}
	if err := p.load(); err != nil {
		return nil, fmt.Errorf("read the folder of certificates: %w", err)
	}
	if _, err := p.refresh(options.now()); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	return p, nil
}

func (p *PKI) load() error {
	key, err := ensureKey(p.ServiceAccountKeyFile())
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writeFile(p.ServiceAccountFiles().Cert, pem.EncodeToMemory(&pem.Block{Type: publicKeyBlock, Bytes: public})); err != nil {
		return err
	}
	for _, name := range []string{clusterAuthority, frontProxyAuthority} {
		if p.authorities[name], err = loadAuthority(p.dir, name); err != nil {
			return err
		}
	}
	for _, r := range p.requests() {
		if p.leaves[r.name], err = loadLeaf(p.files(r.name), r); err != nil {
			return err
		}
	}
	return nil
}

// refresh makes what is missing or due and returns the names of what it wrote.
func (p *PKI) refresh(now time.Time) (changed []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, a := range p.authorities {
		written, err := a.refresh(p.options.AuthorityLifetime, now)
		if err != nil {
			return changed, err
		}
		if written {
			changed = append(changed, name)
		}
	}
	for name, l := range p.leaves {
		written, err := l.refresh(p.signer(l.request), p.options.Lifetime, now)
		if err != nil {
			return changed, err
		}
		if written {
			changed = append(changed, name)
		}
	}
	return changed, nil
}

// requests are all certificates that the folder has to hold.
func (p *PKI) requests() []request {
	var all []request
	for id, subject := range subjects() {
		all = append(all, request{name: string(id), subject: subject, usage: x509.ExtKeyUsageClientAuth})
	}
	for serving, names := range servingNames() {
		all = append(all, request{
			name:    string(serving),
			subject: pkix.Name{CommonName: "taskctl-" + string(serving)},
			usage:   x509.ExtKeyUsageServerAuth,
			names:   append(names, p.options.ExtraNames[serving]...),
		})
	}
	return all
}

// signer is the authority of a certificate. The front proxy has one of its
// own: whoever could get a certificate from it could claim to be any user.
func (p *PKI) signer(r request) *authority {
	if r.name == string(FrontProxy) {
		return p.authorities[frontProxyAuthority]
	}
	return p.authorities[clusterAuthority]
}

func (p *PKI) files(name string) Files {
	path := filepath.Join(p.dir, name)
	return Files{Cert: path + ".crt", Key: path + ".key"}
}

// ClientFiles are the files of a client identity. They stay the same for good;
// their content is replaced on renewal.
func (p *PKI) ClientFiles(id Client) Files { return p.files(string(id)) }

// ServingFiles are the files of a server, like [PKI.ClientFiles].
func (p *PKI) ServingFiles(s Serving) Files { return p.files(string(s)) }

// CAFiles are the cluster authority's certificate and key, for the controller
// that signs certificate signing requests.
func (p *PKI) CAFiles() Files { return p.files(clusterAuthority) }

// CAFile is the cluster authority's certificate.
func (p *PKI) CAFile() string { return p.files(clusterAuthority).Cert }

// FrontProxyCAFile is the front-proxy authority's certificate.
func (p *PKI) FrontProxyCAFile() string { return p.files(frontProxyAuthority).Cert }

// FrontProxyCAFiles are the front-proxy authority's certificate and key, for a
// kubeadm that makes the API server's proxy certificate.
func (p *PKI) FrontProxyCAFiles() Files { return p.files(frontProxyAuthority) }

// ServiceAccountFiles are the public and the private key, as kubeadm names the
// pair, that verify and sign service-account tokens.
func (p *PKI) ServiceAccountFiles() Files {
	return Files{Cert: filepath.Join(p.dir, serviceAccountPublicKey), Key: p.ServiceAccountKeyFile()}
}

// AddNames makes a server's certificate valid for more DNS names and IP
// addresses than those that Open knew. The certificate is replaced if need be.
func (p *PKI) AddNames(s Serving, names ...string) error {
	p.mu.Lock()
	l := p.leaves[string(s)]
	for _, name := range names {
		if !slices.Contains(l.names, name) {
			l.names = append(slices.Clone(l.names), name)
		}
	}
	p.mu.Unlock()
	if _, err := p.refresh(p.options.now()); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	return nil
}

// ServiceAccountKeyFile is the private key that signs service-account tokens.
func (p *PKI) ServiceAccountKeyFile() string { return filepath.Join(p.dir, serviceAccountKey) }

// CABundle is the cluster authority's certificate as PEM: what a kubeconfig, a
// webhook configuration and an APIService hold to verify our servers.
func (p *PKI) CABundle() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return encodeCertificate(p.authorities[clusterAuthority].certificate)
}

// ClientPEM is the current certificate and key of a client identity, for a
// kubeconfig that holds them. [PKI.OnRenew] tells when they change.
func (p *PKI) ClientPEM(id Client) (certificate, key []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.leaves[string(id)]
	key, err = encodeKey(l.key)
	return encodeCertificate(l.certificate), key, err
}

// GetCertificate is for a [tls.Config] of a server: it always gives the
// current certificate.
func (p *PKI) GetCertificate(s Serving) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.leaves[string(s)].tls(), nil
	}
}

// Sign makes a client certificate, PEM, for any user and groups. It lives as
// long as the others, and is neither stored nor renewed.
func (p *PKI) Sign(user string, groups ...string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.authorities[clusterAuthority]
	r := request{subject: pkix.Name{CommonName: user, Organization: groups}, usage: x509.ExtKeyUsageClientAuth}
	signed, err := r.issue(private.Public(), a, p.options.Lifetime, p.options.now())
	if err != nil {
		return nil, nil, fmt.Errorf("sign a client certificate for %s: %w", user, err)
	}
	key, err = encodeKey(private)
	return encodeCertificate(signed), key, err
}
