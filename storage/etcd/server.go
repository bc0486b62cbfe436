package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/taskctl-dev/taskctl/storage/endpoint"
)

// DefaultQuotaBytes is the size of the database at which etcd refuses writes.
// etcd's own default is 2 GiB; it calls 8 GiB the most to be reasonable.
const DefaultQuotaBytes = 8 << 30

// maxSocketBytes is the length of sun_path on Linux, less the closing zero.
const maxSocketBytes = 107

// Server is an etcd server to be run. Fill in the fields, then call Run.
type Server struct {
	// Dir is where the database lies. It is made when missing, mode 0700.
	Dir string
	// Socket is the path of the unix socket to answer on, at most 107 bytes
	// (the kernel's limit). Its folder must exist, and ought to be 0700.
	Socket string
	// Log takes etcd's log, one JSON object a line; default none.
	Log io.Writer
	// QuotaBytes is the database's size limit; default [DefaultQuotaBytes].
	QuotaBytes int64
	// MaxRequestBytes is the size of the largest request; default etcd's own,
	// 1.5 MiB.
	MaxRequestBytes uint
}

// Endpoint is where clients find the running server.
func (s *Server) Endpoint() endpoint.Endpoint {
	return endpoint.Endpoint{URL: "unix://" + s.Socket}
}

// Run starts the server, calls ready once it has answered a linearizable read,
// and stops it when ctx ends. An error tells what to do about it: the folder
// can't be written, another process has the database, the disk is full. After
// an error that etcd calls fatal, its goroutines may be left behind; no write
// is acknowledged any more.
func (s *Server) Run(ctx context.Context, ready func()) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	fatal := newFatalHook()
	stopping, stopStreams := context.WithCancel(context.Background())
	defer stopStreams()
	config, err := s.config(fatal, &streams{stopping})
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	server, err := start(config, fatal)
	if err != nil {
		return fmt.Errorf("etcd in %s did not start: %w", s.Dir, explain(err))
	}
	cause := s.serve(ctx, server, fatal, ready)
	stopStreams()
	closeServer(server, fatal)
	// A fatal error explains whatever else went wrong, also while stopping.
	if err := fatal.err(); err != nil {
		cause = err
	}
	if cause != nil {
		return fmt.Errorf("etcd in %s failed: %w", s.Dir, explain(cause))
	}
	return nil
}

// serve waits until the server is ready, and then until it has to stop. It
// returns nil when ctx asked for that.
func (s *Server) serve(ctx context.Context, server *embed.Etcd, fatal *fatalHook, ready func()) error {
	started := server.Server.ReadyNotify()
	for {
		select {
		case <-started:
			if err := s.answers(ctx, server); err != nil {
				return err
			}
			ready()
			started = nil
		case <-ctx.Done():
			return nil
		case err := <-server.Err():
			return err
		case <-server.Server.StopNotify():
			return errors.New("the server stopped by itself")
		case <-fatal.fired:
			return fatal.err()
		}
	}
}

// start is [embed.StartEtcd] in a goroutine of its own, which a fatal error
// during the start ends.
func start(config *embed.Config, fatal *fatalHook) (*embed.Etcd, error) {
	type result struct {
		server *embed.Etcd
		err    error
	}
	done := make(chan result, 1)
	go func() {
		server, err := embed.StartEtcd(config)
		done <- result{server, err}
	}()
	select {
	case r := <-done:
		return r.server, r.err
	case <-fatal.fired:
		return nil, fatal.err()
	}
}

// closeLimit is how long a server may take to close after a fatal error, which
// may have ended goroutines that closing waits for.
const closeLimit = 2 * time.Second

func closeServer(server *embed.Etcd, fatal *fatalHook) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		server.Close()
	}()
	select {
	case <-closed:
	case <-fatal.fired:
		select {
		case <-closed:
		case <-time.After(closeLimit):
		}
	}
}
