// Package serve opens a store and serves the etcd v3 API from it: what
// `taskctl storage serve` and the supervisor run. It knows neither the command
// line nor Kubernetes.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/admin"
	"github.com/taskctl-dev/taskctl/storage/server"
)

// Server is a store together with the listeners that answer for it. The
// fields are set before Run and not changed afterwards.
type Server struct {
	// Store says which database and where. Its Logger and Metrics are set
	// from this struct when they are nil.
	Store storage.Config
	// Listen are the URLs to answer on: http://HOST:PORT, https://HOST:PORT or
	// unix:///PATH; port 0 is a free one. At least one is needed.
	Listen []string
	// TLS is used by all https URLs.
	TLS server.TLSFiles
	// ProgressNotifyInterval is how often watches that ask for it are told
	// their progress; 0 means etcd's 10 minutes.
	ProgressNotifyInterval time.Duration
	// MaxRequestBytes and MaxTxnOps are etcd's limits; 0 means etcd's numbers.
	MaxRequestBytes, MaxTxnOps int
	// Program is the version of the program, which backups carry.
	Program string
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger

	mu   sync.Mutex
	urls []string
}

// Run opens the store, serves it until ctx ends and closes it. It calls ready
// once a linearizable read was answered. What is wrong with the configuration,
// the listeners or the database is said before anything is written.
func (s *Server) Run(ctx context.Context, ready func()) (err error) {
	listeners, err := s.listen()
	if err != nil {
		return err
	}
	defer func() { // Serve closes them; this is for a store that does not open
		for _, listener := range listeners {
			if closeErr := listener.Close(); closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
				err = errors.Join(err, closeErr)
			}
		}
	}()
	config, registry := s.Store, prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if config.Logger == nil {
		config.Logger = s.Logger
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Metrics == nil {
		config.Metrics = registry
	}
	store, err := storage.Open(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := store.Close(); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("close the store: %w", closeErr))
		}
	}()
	return server.New(store, server.Options{
		MaxRequestBytes:        s.MaxRequestBytes,
		MaxTxnOps:              s.MaxTxnOps,
		ProgressNotifyInterval: s.ProgressNotifyInterval,
		SlowRequest:            config.Slow,
		ClientURLs:             s.URLs(),
		Logger:                 s.Logger,
		Registerer:             registry,
		Gatherer:               registry,
		Web:                    map[string]http.Handler{admin.Prefix: admin.Handler(store, s.Program, config.Logger)},
	}).Serve(ctx, ready, listeners...)
}

func (s *Server) listen() ([]net.Listener, error) {
	if len(s.Listen) == 0 {
		return nil, errors.New("the store has no URL to listen on")
	}
	var listeners []net.Listener
	var urls []string
	for _, url := range s.Listen {
		files := s.TLS
		if !strings.HasPrefix(url, "https://") && len(s.Listen) > 1 {
			files = server.TLSFiles{} // they are for the other listeners
		}
		listener, err := server.Listen(url, files)
		if err != nil {
			for _, opened := range listeners {
				_ = opened.Close()
			}
			return nil, err
		}
		listeners = append(listeners, listener)
		scheme, _, _ := strings.Cut(url, "://")
		if scheme != "unix" {
			url = scheme + "://" + listener.Addr().String()
		}
		urls = append(urls, url)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls = urls
	return listeners, nil
}

// URLs are those that are listened on, with the ports that were chosen. It is
// empty before Run has opened the listeners.
func (s *Server) URLs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.urls
}

// Endpoint is where the first listener is found, once it is open. For https
// the caller adds its own certificate and the authority that it trusts.
func (s *Server) Endpoint() storage.Endpoint {
	if urls := s.URLs(); len(urls) > 0 {
		return storage.Endpoint{URL: urls[0]}
	}
	return storage.Endpoint{URL: s.Listen[0]}
}
