package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Serve answers on the listeners until ctx ends, and calls ready once a
// linearizable read was answered. It closes the listeners and returns nil
// after a clean stop; a Server serves once. gRPC and plain HTTP requests
// (/health, /version, /metrics) come on the same ports, as etcd's do.
func (s *Server) Serve(ctx context.Context, ready func(), listeners ...net.Listener) error {
	shared := newSplitListener(listeners, s.options.Logger)
	web := &http.Server{Handler: s.webHandler(), ReadHeaderTimeout: 10 * time.Second}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		// The listener is closed before gRPC is told to stop.
		if err := s.grpc.Serve(shared.grpc); err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("serve gRPC: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		if err := web.Serve(shared.web); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	})
	group.Go(func() error { return shared.run() })
	group.Go(func() error {
		if err := s.check(groupCtx); err != nil && groupCtx.Err() == nil {
			return fmt.Errorf("check the store before serving it: %w", err)
		}
		if groupCtx.Err() == nil {
			ready()
		}
		<-groupCtx.Done()
		s.stop(shared, web)
		return nil
	})
	return group.Wait()
}

// stop ends streams, lets requests that are under way finish within the
// grace period, and closes every connection.
func (s *Server) stop(shared *splitListener, web *http.Server) {
	s.health.Shutdown()
	s.endStreams()
	shared.close()
	graceful := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(graceful)
	}()
	timer := time.NewTimer(s.options.StopGrace)
	defer timer.Stop()
	select {
	case <-graceful:
	case <-timer.C:
		s.grpc.Stop()
		<-graceful
	}
	if err := web.Close(); err != nil {
		s.options.Logger.Warn("close HTTP connections", "error", err)
	}
}
