package storage

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"
)

// TLS says how connections to a backend are protected.
type TLS struct {
	// CAFile, CertFile and KeyFile are PEM files: the authorities that the
	// server's certificate is checked with, and our own certificate and key.
	CAFile, CertFile, KeyFile string
	// SkipVerify takes any certificate of the server.
	SkipVerify bool
}

// Config reads the files. It is nil if nothing is set.
func (t TLS) Config() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.SkipVerify}
	if t.CAFile != "" {
		content, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificate authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("there is no certificate in %s", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("a client certificate and its key go together: give both files or neither")
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Pool bounds the connections to a SQL server. Zero is the default of the kind
// of database.
type Pool struct {
	// MaxOpen is the most connections at once, MaxIdle the most that are kept
	// while nobody uses them.
	MaxOpen, MaxIdle int
	// MaxLifeTime is how long a connection is used in all, MaxIdleLifeTime
	// how long it is kept unused.
	MaxLifeTime, MaxIdleLifeTime time.Duration
}

// ownConnections are those that don't read: one writes, one renews the
// ownership.
const ownConnections = 2

// readers is how many connections read; 0 is the default.
func (p Pool) readers() int {
	if p.MaxOpen == 0 {
		return 0
	}
	return max(1, p.MaxOpen-ownConnections)
}
