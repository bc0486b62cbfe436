package mvcc

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Backend is one database of the store.
type Backend struct {
	// Name is what errors, metrics and logs call it.
	Name string
	// Database is closed by the store.
	Database backend.Database
}

// Router says where keys live. Its answers never change while a store runs.
type Router interface {
	// Route is the index of the backend of a key.
	Route(key string) int
	// Overlap is the indexes, in order, of all backends that keys of
	// [from, end) can be routed to; an empty end means no upper bound.
	Overlap(from, end string) []int
	// Reads is the indexes, in order, of the backends that a read of the
	// single key concerns: beside its own those of the keys below it, where
	// the key is one that clients read to find out the newest revision of
	// them all.
	Reads(key string) []int
}

// Options are a store's settings. The zero value of each means its default.
type Options struct {
	// Backends are the databases; the first is the default one, which also
	// keeps leases without keys and the compaction's floor.
	Backends []Backend
	// Router is needed for more than one backend.
	Router Router
	// Ceiling keeps a revision durably that is above all revisions that were
	// handed out, so that a store of several backends can start while one of
	// them does not answer. nil: all backends must answer at the start.
	Ceiling Ceiling
	// Frozen is for looking at a store that does not run otherwise: no lease
	// expires, and nothing that is compacted is deleted.
	Frozen bool
	// CacheBytes bounds the values kept in memory, for each backend; the
	// default is 64 MiB.
	CacheBytes int64
	// RingBytes and RingEvents bound the events kept in memory for watches
	// that are a little late, for each backend: 16 MiB and 50,000.
	RingBytes  int64
	RingEvents int
	// Slow is how long an operation takes before it is logged, with its key
	// and never its value; the default is 500 ms.
	Slow time.Duration
	// Logger gets what an operator should know; the default discards it.
	Logger *slog.Logger
	// Metrics is where the collectors are registered; nil registers none.
	Metrics prometheus.Registerer
}

func (o *Options) defaults() {
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	if o.RingBytes == 0 {
		o.RingBytes = 16 << 20
	}
	if o.RingEvents == 0 {
		o.RingEvents = 50000
	}
	if o.Slow == 0 {
		o.Slow = 500 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Router == nil {
		o.Router = onlyRouter{}
	}
}

// onlyRouter routes everything to the only backend.
type onlyRouter struct{}

func (onlyRouter) Route(string) int             { return 0 }
func (onlyRouter) Overlap(string, string) []int { return []int{0} }
func (onlyRouter) Reads(string) []int           { return []int{0} }
