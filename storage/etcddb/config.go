package etcddb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// Config is where the etcd is and how it is used.
type Config struct {
	// Endpoints are URLs of the cluster's members: http://HOST:PORT,
	// https://HOST:PORT or unix:///PATH. All have the same scheme.
	Endpoints []string
	// CAFile, CertFile and KeyFile are PEM files for https: the authority
	// that signed the members' certificates (empty: the system's), and the
	// client's own certificate and key (empty: none).
	CAFile, CertFile, KeyFile string
	// ServerName is the name that the members' certificates must have where
	// it is not the host of their URLs.
	ServerName string
	// InsecureSkipVerify takes any certificate for a member's.
	InsecureSkipVerify bool
	// Username and Password are for an etcd with authentication.
	Username, Password string
	// Term is how long ownership lasts without being renewed; 0 means 10 s.
	// It is rounded up to whole seconds; etcd grants at least two.
	Term time.Duration
	// CommitTimeout is how long a batch may take before its outcome counts as
	// unknown; 0 means 30 s.
	CommitTimeout time.Duration
	// MaxTxnOps is the members' --max-txn-ops; 0 means etcd's default, 128.
	MaxTxnOps int
	// MaxRequestBytes is the members' --max-request-bytes; 0 means etcd's
	// default, 1.5 MiB.
	MaxRequestBytes int
	// Dial opens network connections; nil means a net.Dialer. It gets the
	// address of the endpoint's URL.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
}

const (
	defaultTerm         = 10 * time.Second
	defaultTimeout      = 30 * time.Second
	defaultMaxTxnOps    = 128
	defaultRequestBytes = 3 << 19
	leastTxnOps         = 16
)

// ParseURL reads an address as it stands in a configuration:
// https://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…], the same with http, or
// unix:///PATH.
func ParseURL(address string) (Config, error) {
	scheme, rest, found := strings.Cut(address, "://")
	if !found || scheme != "http" && scheme != "https" && scheme != "unix" {
		return Config{}, errURL
	}
	if scheme == "unix" {
		if !strings.HasPrefix(rest, "/") {
			return Config{}, errURL
		}
		return Config{Endpoints: []string{address}}, nil
	}
	config := Config{}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, err := url.Parse(scheme + "://" + rest[:at] + "@host")
		if err != nil || user.User == nil {
			return Config{}, errURL // the parser's own error would quote the password
		}
		config.Username = user.User.Username()
		config.Password, _ = user.User.Password()
		rest = rest[at+1:]
	}
	for _, host := range strings.Split(strings.TrimSuffix(rest, "/"), ",") {
		parsed, err := url.Parse(scheme + "://" + host)
		if err != nil || parsed.Hostname() == "" || parsed.Path != "" || parsed.RawQuery != "" {
			return Config{}, errURL
		}
		if parsed.Port() == "" {
			parsed.Host += ":2379"
		}
		config.Endpoints = append(config.Endpoints, parsed.String())
	}
	return config, nil
}

// errURL does not quote the address: a password may be in it.
var errURL = errors.New("the etcd address cannot be parsed; it looks like https://host:2379 or https://host1:2379,host2:2379,host3:2379")

func (c *Config) setDefaults() error {
	if len(c.Endpoints) == 0 {
		return errors.New("an etcd needs an endpoint, for example https://host:2379")
	}
	if c.Term <= 0 {
		c.Term = defaultTerm
	}
	c.Term = time.Duration(math.Ceil(c.Term.Seconds())) * time.Second
	if c.CommitTimeout <= 0 {
		c.CommitTimeout = defaultTimeout
	}
	if c.MaxTxnOps == 0 {
		c.MaxTxnOps = defaultMaxTxnOps
	}
	if c.MaxTxnOps < leastTxnOps {
		return fmt.Errorf("an etcd with --max-txn-ops=%d is not enough; it needs %d", c.MaxTxnOps, leastTxnOps)
	}
	if c.MaxRequestBytes <= 0 {
		c.MaxRequestBytes = defaultRequestBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// client connects to the endpoints; the connection is made in the background.
func (c *Config) client(endpoints ...string) (*clientv3.Client, error) {
	security, err := c.tls()
	if err != nil {
		return nil, err
	}
	config := clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		MaxCallSendMsgSize:   c.MaxRequestBytes + 512<<10,
		TLS:                  security,
		Username:             c.Username,
		Password:             c.Password,
		Logger:               zap.NewNop(),
		// What a request that fails means is decided here.
		MaxUnaryRetries: 1,
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(failFast),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: 5 * time.Second,
			}),
		},
	}
	if c.Dial != nil {
		config.DialOptions = append(config.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return c.Dial(ctx, "tcp", address)
		}))
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}

// failFast ends a request at once when no member is connected; the client by
// itself would wait for one until the request's time is over.
func failFast(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return invoke(ctx, method, request, reply, connection, append(options, grpc.WaitForReady(false))...)
}

func (c *Config) tls() (*tls.Config, error) {
	if !strings.HasPrefix(c.Endpoints[0], "https://") {
		if c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" {
			return nil, errors.New("certificates are of use for an etcd at https:// only; write the address so, or leave them out")
		}
		return nil, nil
	}
	info := transport.TLSInfo{
		TrustedCAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		ServerName: c.ServerName, InsecureSkipVerify: c.InsecureSkipVerify,
	}
	security, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the certificates for etcd cannot be used: %w", err)
	}
	return security, nil
}
