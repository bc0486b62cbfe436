package admin

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/taskctl-dev/taskctl/storage"
)

// Prefix is the path under which a store answers.
const Prefix = "/taskctl/"

// measured is how long the rate of writes is measured.
const measured = time.Second

// Handler answers for a store. program is the version of this program; the
// logger gets what goes wrong in the middle of an answer.
func Handler(store *storage.Store, program string, logger *slog.Logger) http.Handler {
	h := &handler{store: store, program: program, logger: logger}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Prefix+"backup", h.backup)
	mux.HandleFunc("POST "+Prefix+"verify", h.verify)
	mux.HandleFunc("POST "+Prefix+"routes", h.routes)
	mux.HandleFunc("POST "+Prefix+"explain", h.explain)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			answer(w, http.StatusForbidden, errorBody{"requests of browsers are not answered"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

type handler struct {
	store   *storage.Store
	program string
	logger  *slog.Logger
}

// backup streams; what goes wrong in the middle breaks the connection, and the
// file has no end.
func (h *handler) backup(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	out := &counted{to: w}
	summary, err := Backup(r.Context(), h.store, out, h.program)
	switch {
	case err == nil:
		h.logger.Info("a backup was taken", "revision", summary.Revision, "keys", summary.Rows)
	case out.written == 0:
		answer(w, http.StatusInternalServerError, errorBody{err.Error()})
	default:
		if r.Context().Err() == nil {
			h.logger.Error("a backup failed", "error", err)
		}
		panic(http.ErrAbortHandler)
	}
}

// counted counts what was written.
type counted struct {
	to      http.ResponseWriter
	written int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.written += int64(n)
	return n, err
}

func (h *handler) verify(w http.ResponseWriter, r *http.Request) {
	report, err := Verify(r.Context(), h.store)
	respond(w, report, err)
}

func (h *handler) routes(w http.ResponseWriter, r *http.Request) {
	routes, err := ListRoutes(r.Context(), h.store, measured)
	respond(w, routes, err)
}

func (h *handler) explain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	respond(w, Explain(h.store, query.Get("key"), query.Get("prefix") != ""), nil)
}

type errorBody struct {
	Error string `json:"error"`
}

func respond(w http.ResponseWriter, value any, err error) {
	if err != nil {
		answer(w, http.StatusInternalServerError, errorBody{err.Error()})
		return
	}
	answer(w, http.StatusOK, value)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// An error means that the client has gone.
	_ = json.NewEncoder(w).Encode(body)
}
