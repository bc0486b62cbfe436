package server

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Limits and intervals that hold where [Options] leaves a field zero. They are
// etcd's own (server/embed/config.go).
const (
	DefaultMaxRequestBytes        = 1536 * 1024
	DefaultMaxTxnOps              = 128
	DefaultProgressNotifyInterval = 10 * time.Minute
	DefaultMaxKeyBytes            = 2048

	minProgressNotifyInterval = 100 * time.Millisecond
	grpcOverheadBytes         = 512 * 1024
)

// Options are the service's settings. The zero value is usable.
type Options struct {
	// MaxRequestBytes limits a request, in bytes; 0 means
	// [DefaultMaxRequestBytes].
	MaxRequestBytes int
	// MaxTxnOps limits the operations of each list of a transaction; 0 means
	// [DefaultMaxTxnOps].
	MaxTxnOps int
	// MaxKeyBytes limits the keys that may be put, in bytes, since databases
	// limit index entries; 0 means [DefaultMaxKeyBytes].
	MaxKeyBytes int
	// ProgressNotifyInterval is the time after which a watch that asked for
	// it is told its progress if nothing happened; 0 means
	// [DefaultProgressNotifyInterval], and at least 100 ms are used.
	ProgressNotifyInterval time.Duration
	// SlowRequest is the duration above which a request is logged, with its
	// key and never with a value; 0 means 500 ms, negative switches it off.
	SlowRequest time.Duration
	// StopGrace is how long requests that are under way may go on once Serve
	// was told to stop; 0 means 2 s.
	StopGrace time.Duration
	// ClusterID and MemberID stand in every header; 0 means constants. They
	// should stay the same for one store, since etcd clients that are given
	// several endpoints compare them.
	ClusterID, MemberID uint64
	// MemberName is the name in the member list; "" means "taskctl".
	MemberName string
	// ClientURLs are the URLs that the member list reports.
	ClientURLs []string
	// Logger is told what goes wrong; nil discards it.
	Logger *slog.Logger
	// Registerer gets the service's metrics and Gatherer answers /metrics;
	// without a Registerer none are kept, without a Gatherer /metrics is 404.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Web are handlers of further HTTP paths on the same ports.
	Web map[string]http.Handler
}

func (o Options) withDefaults() Options {
	setDefault(&o.MaxRequestBytes, DefaultMaxRequestBytes)
	setDefault(&o.MaxTxnOps, DefaultMaxTxnOps)
	setDefault(&o.MaxKeyBytes, DefaultMaxKeyBytes)
	setDefault(&o.ProgressNotifyInterval, DefaultProgressNotifyInterval)
	setDefault(&o.SlowRequest, 500*time.Millisecond)
	setDefault(&o.StopGrace, 2*time.Second)
	setDefault(&o.ClusterID, 0x7461736b63746c01)
	setDefault(&o.MemberID, 0x7461736b63746c02)
	setDefault(&o.MemberName, "taskctl")
	o.ProgressNotifyInterval = max(o.ProgressNotifyInterval, minProgressNotifyInterval)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// progressInterval is the interval with up to a tenth added, so that watches
// that were made together are not all answered at the same moment.
func (o Options) progressInterval() time.Duration {
	return o.ProgressNotifyInterval + rand.N(o.ProgressNotifyInterval/10)
}

// maxMessageBytes is the largest message that is received; etcd allows this
// much more than a request so that it can refuse a large one by its own error.
func (o Options) maxMessageBytes() int { return o.MaxRequestBytes + grpcOverheadBytes }
