package control

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/taskctl-dev/taskctl/internal/logging"
)

// Server answers on the control socket.
type Server struct {
	// Status is the appliance's state now.
	Status func() Status
	// Stop begins an ordered stop and returns at once; it may be called more
	// than once.
	Stop func()
	// Logs is the folder of log files.
	Logs string
}

// Run serves on the listener until ctx ends, which is not an error. It closes
// the listener and ends running requests.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.status)
	mux.HandleFunc("GET /logs", s.logs)
	mux.HandleFunc("POST /stop", s.stop)
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-requests.Done()
		limit, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		if server.Shutdown(limit) != nil {
			server.Close()
		}
	}()
	unhook := context.AfterFunc(ctx, cancel)
	err := server.Serve(listener)
	unhook()
	cancel()
	<-stopped
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.Status()) }

func (s *Server) stop(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusAccepted, stopAnswer{PID: os.Getpid()})
	s.Stop()
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	options := logging.ReadOptions{Components: query["component"], Follow: query.Get("follow") != ""}
	if text := query.Get("since"); text != "" {
		since, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			answer(w, http.StatusBadRequest, errorBody{"since: " + err.Error()})
			return
		}
		options.Since = since
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := &flushed{ResponseWriter: w, follow: options.Follow}
	err := logging.Read(r.Context(), s.Logs, options, out)
	if err != nil && !out.written {
		answer(w, http.StatusNotFound, errorBody{err.Error()})
	}
}

// flushed passes lines on at once when they are followed.
type flushed struct {
	http.ResponseWriter
	follow  bool
	written bool
}

func (f *flushed) Write(p []byte) (int, error) {
	f.written = true
	n, err := f.ResponseWriter.Write(p)
	if f.follow && err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// An error means that the client has gone.
	_ = json.NewEncoder(w).Encode(body)
}
