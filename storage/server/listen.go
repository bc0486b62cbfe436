package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
)

// TLSFiles are the PEM files of a listener that speaks TLS.
type TLSFiles struct {
	// CertFile and KeyFile are the server's certificate and key. They are read
	// again for each connection, so a renewed certificate is used at once.
	CertFile, KeyFile string
	// ClientCAFile has the authorities of client certificates; with it a
	// client without a valid one is refused (mutual TLS).
	ClientCAFile string
}

// Listen opens a listener for http://HOST:PORT, https://HOST:PORT or
// unix:///PATH. Port 0 is a free one. An https listener needs files with a
// certificate and a key, the others must have none. A socket file that nobody
// listens on any more is replaced; a new one is only open to this user.
// Whoever calls Listen closes the listener, or gives it to [Server.Serve].
func Listen(rawURL string, files TLSFiles) (net.Listener, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", rawURL, err)
	}
	switch {
	case u.Scheme == "https" && (files.CertFile == "" || files.KeyFile == ""):
		return nil, fmt.Errorf("listen on %q: https needs a certificate and a key", rawURL)
	case u.Scheme != "https" && files != TLSFiles{}:
		return nil, fmt.Errorf("listen on %q: a certificate was given, but only https uses one", rawURL)
	}
	switch u.Scheme {
	case "http", "https":
		return listenTCP(rawURL, u, files)
	case "unix":
		return listenUnix(strings.TrimPrefix(rawURL, "unix://"))
	}
	return nil, fmt.Errorf("listen on %q: the URL must be http://HOST:PORT, https://HOST:PORT or unix:///PATH", rawURL)
}

func listenTCP(rawURL string, u *url.URL, files TLSFiles) (net.Listener, error) {
	if u.Port() == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("listen on %q: the URL must be %s://HOST:PORT", rawURL, u.Scheme)
	}
	var config *tls.Config
	if u.Scheme == "https" {
		var err error
		if config, err = files.config(); err != nil {
			return nil, fmt.Errorf("listen on %q: %w", rawURL, err)
		}
	}
	listener, err := net.Listen("tcp", u.Host)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", rawURL, err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return listener, nil
}

// listenUnix opens a socket. A path's file is only removed when connecting to
// it shows that its owner is gone.
func listenUnix(path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("listen on %q: the file exists and is no socket", path)
	case err == nil:
		conn, dialErr := net.Dial("unix", path)
		if dialErr == nil {
			_ = conn.Close()
			return nil, fmt.Errorf("listen on %q: another process serves this socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("replace an abandoned socket: %w", err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("listen on %q: %w", path, err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %q (a socket's path may have 107 bytes): %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("restrict the socket to this user: %w", err)
	}
	return listener, nil
}

func (f TLSFiles) config() (*tls.Config, error) {
	if _, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile); err != nil {
		return nil, fmt.Errorf("load the server's certificate: %w", err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			certificate, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
			return &certificate, err
		},
	}
	if f.ClientCAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(f.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("read the client certificates' authorities: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the client certificates' authorities: %s has no PEM certificate", f.ClientCAFile)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}
