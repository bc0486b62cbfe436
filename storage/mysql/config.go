package mysql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// Config is where the database is and how it is used.
type Config struct {
	// DSN is mysql:// followed by the driver's form
	// user:password@tcp(host:port)/database?parameters. The user's part is
	// taken as it is, not percent-decoded. user:password@host:port/database
	// is taken too.
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

// errDSN is all that is said about a DSN that does not parse: the parser's own
// words can quote a piece of the password.
var errDSN = errors.New("the MySQL address cannot be parsed; it looks like mysql://user:password@tcp(host:3306)/database")

// parse returns the driver's configuration, with what this package relies on
// set whatever the DSN says.
func (c *Config) parse() (*mysql.Config, error) {
	rest, found := strings.CutPrefix(c.DSN, "mysql://")
	if !found {
		return nil, errDSN
	}
	parsed, err := mysql.ParseDSN(driverForm(rest))
	if err != nil {
		return nil, errDSN
	}
	if parsed.DBName == "" {
		return nil, fmt.Errorf("the MySQL address names no database; add it: mysql://USER:PASSWORD@tcp(%s)/DATABASE", parsed.Addr)
	}
	if c.Password != "" {
		parsed.Passwd = c.Password
	}
	if parsed.Timeout == 0 {
		parsed.Timeout = 10 * time.Second
	}
	parsed.DialFunc = c.Dial
	if c.TLS != nil {
		parsed.TLS = c.TLS.Clone()
		if host, _, err := net.SplitHostPort(parsed.Addr); err == nil {
			parsed.TLS.ServerName = host
		}
	}
	parsed.Logger = &mysql.NopLogger{} // everything is in the returned errors
	parsed.MultiStatements = true
	parsed.InterpolateParams = true
	parsed.ClientFoundRows = true // a row that is set to what it was counts
	parsed.ParseTime = false
	parsed.RejectReadOnly = false
	parsed.AllowAllFiles = false
	// Texts are built for an encoding in which no byte of a character looks
	// like a quote or a backslash.
	parsed.Collation = ""
	if err := parsed.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, errDSN
	}
	if _, set := parsed.Params["innodb_lock_wait_timeout"]; !set {
		if parsed.Params == nil {
			parsed.Params = map[string]string{}
		}
		parsed.Params["innodb_lock_wait_timeout"] = "10" // seconds; the default outlasts a batch's patience
	}
	return parsed, nil
}

// driverForm puts a plain host:port into the driver's protocol(address).
func driverForm(dsn string) string {
	slash := strings.LastIndexByte(dsn, '/')
	if slash < 0 {
		return dsn
	}
	at := strings.LastIndexByte(dsn[:slash], '@')
	address := dsn[at+1 : slash]
	if address == "" || strings.ContainsAny(address, "()") || address == "tcp" || address == "unix" {
		return dsn
	}
	return dsn[:at+1] + "tcp(" + address + ")" + dsn[slash:]
}

// quoteIdentifier makes a name safe to stand in SQL.
func quoteIdentifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
