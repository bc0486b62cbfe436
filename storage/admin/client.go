package admin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/verify"
)

// ErrNotServed says that what answers at an endpoint is no store of this
// program: an etcd, for example.
var ErrNotServed = errors.New("what answers there is not a store of taskctl")

// Client asks a store that runs.
type Client struct {
	base string
	http *http.Client
}

// NewClient makes a client of the store at an endpoint; the caller closes it.
func NewClient(endpoint storage.Endpoint) (*Client, error) {
	transport := &http.Transport{}
	c := &Client{base: endpoint.URL, http: &http.Client{Transport: transport}}
	switch path, isSocket := strings.CutPrefix(endpoint.URL, "unix://"); {
	case isSocket:
		c.base = "http://taskctl"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", path)
		}
	case strings.HasPrefix(endpoint.URL, "https://"):
		config, err := storage.TLS{CAFile: endpoint.CAFile, CertFile: endpoint.CertFile, KeyFile: endpoint.KeyFile}.Config()
		if err != nil {
			return nil, err
		}
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		transport.TLSClientConfig = config
	case !strings.HasPrefix(endpoint.URL, "http://"):
		return nil, errors.New("an endpoint is http://HOST:PORT, https://HOST:PORT or unix:///PATH")
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Backup copies a backup to a writer. It may be cut off without an error: check
// what was written.
func (c *Client) Backup(ctx context.Context, to io.Writer) error {
	body, err := c.do(ctx, "backup", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.Copy(to, body); err != nil {
		return fmt.Errorf("copy the backup: %w", err)
	}
	return nil
}

// Verify asks for a check of the store's rules.
func (c *Client) Verify(ctx context.Context) (report verify.Report, err error) {
	return report, c.read(ctx, "verify", nil, &report)
}

// Routes asks for the rules and the backends.
func (c *Client) Routes(ctx context.Context) (routes Routes, err error) {
	return routes, c.read(ctx, "routes", nil, &routes)
}

// Explain asks where a key is stored and why.
func (c *Client) Explain(ctx context.Context, key string, prefix bool) (e Explanation, err error) {
	query := url.Values{"key": {key}}
	if prefix {
		query.Set("prefix", "1")
	}
	return e, c.read(ctx, "explain", query, &e)
}

func (c *Client) read(ctx context.Context, what string, query url.Values, into any) error {
	body, err := c.do(ctx, what, query)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("read the store's answer: %w", err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, what string, query url.Values) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.base, "/")+Prefix+what+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the store: %w", err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	var body errorBody
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil || body.Error == "" {
		return nil, ErrNotServed
	}
	return nil, errors.New(body.Error)
}
