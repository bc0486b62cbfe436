package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// defaultSchema holds the tables unless the DSN names another by search_path.
const defaultSchema = "taskctl"

// Config is where the database is and how it is used.
type Config struct {
	// DSN is a postgres:// URL. Its query parameters are the driver's and the
	// server's own; the first name of search_path is the schema that holds
	// the tables (default taskctl).
	DSN string
	// Password is used instead of the DSN's where it is not empty.
	Password string
	// Readers is the largest number of reading connections; 0 means 8. Beside
	// them there are two: one writes, one renews the ownership.
	Readers int
	// IdleReaders is how many of them are kept while nobody reads; 0 means
	// all. ReaderLife and ReaderIdleLife are how long one is used in all, and
	// kept unused; 0 means without end.
	IdleReaders                int
	ReaderLife, ReaderIdleLife time.Duration
	// TLS is used for every connection instead of what the DSN says, which is
	// what nil means. The server's name is filled in.
	TLS *tls.Config
	// Term is how long ownership lasts without being renewed; 0 means 10 s.
	Term time.Duration
	// CommitTimeout is how long a batch may take before its outcome counts as
	// unknown; 0 means 30 s.
	CommitTimeout time.Duration
	// Dial opens network connections; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger gets warnings about the server's settings; nil discards them.
	Logger *slog.Logger
}

func (c *Config) setDefaults() {
	if c.Readers <= 0 {
		c.Readers = 8
	}
	if c.Term <= 0 {
		c.Term = 10 * time.Second
	}
	if c.CommitTimeout <= 0 {
		c.CommitTimeout = 30 * time.Second
	}
	if c.Dial == nil {
		dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
		c.Dial = dialer.DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func (c *Config) readerLimits() sqlstore.PoolLimits {
	return sqlstore.PoolLimits{Open: c.Readers, Idle: c.IdleReaders, Life: c.ReaderLife, IdleLife: c.ReaderIdleLife}
}

// errDSN is all that is said about a DSN that does not parse: what the parsers
// say quotes pieces of it, and a password that is not escaped can be in them.
var errDSN = errors.New("the PostgreSQL address cannot be parsed; it looks like postgres://user:password@host:5432/database, with / : @ ? # % in the password written as %2F %3A %40 %3F %23 %25")

// parse returns the driver's configuration and the schema's name.
func (c *Config) parse() (*pgconn.Config, string, error) {
	if !strings.HasPrefix(c.DSN, "postgres://") && !strings.HasPrefix(c.DSN, "postgresql://") {
		return nil, "", errDSN
	}
	address, err := url.Parse(c.DSN)
	if err != nil {
		return nil, "", errDSN
	}
	parsed, err := pgconn.ParseConfig(c.DSN)
	if err != nil {
		return nil, "", fmt.Errorf("%w%s", errDSN, parameters(address))
	}
	if strings.Trim(address.Path, "/") == "" && address.Query().Get("dbname") == "" {
		return nil, "", fmt.Errorf("the PostgreSQL address names no database; add it: postgres://%s/DATABASE", address.Host)
	}
	if c.Password != "" {
		parsed.Password = c.Password
	}
	if parsed.ConnectTimeout == 0 {
		parsed.ConnectTimeout = 10 * time.Second
	}
	parsed.DialFunc = c.Dial
	if c.TLS != nil {
		c.secure(parsed)
	}
	if parsed.ValidateConnect == nil && len(parsed.Fallbacks) > 0 {
		parsed.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	schema := defaultSchema
	if path, found := parsed.RuntimeParams["search_path"]; found {
		schema, _, _ = strings.Cut(path, ",")
		schema = strings.Trim(strings.TrimSpace(schema), `"`)
		// Names are qualified; poolers refuse the parameter.
		delete(parsed.RuntimeParams, "search_path")
	}
	if schema == "" || len(schema) > 63 || strings.ContainsRune(schema, 0) {
		return nil, "", errors.New("search_path in the PostgreSQL address names no schema; give one of 1 to 63 bytes")
	}
	if parsed.RuntimeParams["application_name"] == "" {
		parsed.RuntimeParams["application_name"] = "taskctl"
	}
	return parsed, schema, nil
}

// secure makes every connection use TLS as it is set. Attempts without TLS,
// which the driver makes where the DSN does not forbid them, are left out.
func (c *Config) secure(parsed *pgconn.Config) {
	named := func(host string) *tls.Config {
		settings := c.TLS.Clone()
		settings.ServerName = host
		return settings
	}
	parsed.TLSConfig = named(parsed.Host)
	tried := map[string]bool{net.JoinHostPort(parsed.Host, fmt.Sprint(parsed.Port)): true}
	var others []*pgconn.FallbackConfig
	for _, other := range parsed.Fallbacks {
		if address := net.JoinHostPort(other.Host, fmt.Sprint(other.Port)); !tried[address] {
			tried[address] = true
			other.TLSConfig = named(other.Host)
			others = append(others, other)
		}
	}
	parsed.Fallbacks = others
}

// parameters names those that the driver itself reads, as a hint: their values
// hold no secret.
func parameters(address *url.URL) string {
	var named []string
	for _, name := range []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "target_session_attrs"} {
		if value := address.Query().Get(name); value != "" {
			named = append(named, name+"="+value)
		}
	}
	if named == nil {
		return ""
	}
	return "; check " + strings.Join(named, ", ")
}

// quoteIdentifier makes a name safe to stand in SQL.
func quoteIdentifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
