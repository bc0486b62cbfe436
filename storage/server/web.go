package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.etcd.io/etcd/api/v3/version"
)

// webHandler answers the HTTP paths that etcd serves beside gRPC: /health,
// /livez, /readyz, /version and /metrics.
func (s *Server) webHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.serveHealth)
	mux.HandleFunc("GET /readyz", s.serveReady)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, version.Versions{
			Server: version.Version, Cluster: storageVersion, Storage: storageVersion,
		})
	})
	for path, handler := range s.options.Web {
		mux.Handle(path, handler)
	}
	if s.options.Gatherer != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(s.options.Gatherer, promhttp.HandlerOpts{}))
	}
	return mux
}

// serveHealth answers like etcd: 200 and "true", or 503 and the reason.
func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	health := struct {
		Health string `json:"health"`
		Reason string `json:"reason"`
	}{Health: "true"}
	code := http.StatusOK
	if err := s.checkSoon(r); err != nil {
		health.Health, health.Reason = "false", err.Error()
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, health)
}

func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	if err := s.checkSoon(r); err != nil {
		writeText(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	writeText(w, http.StatusOK, "ok")
}

func (s *Server) checkSoon(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	return s.check(ctx)
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // the client is gone when this fails
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // the client is gone when this fails
}
