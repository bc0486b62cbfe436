package aggregator

import (
	"context"
	"errors"
	"net"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

const (
	// RunIDHeader is the response header that carries [Options.RunID].
	RunIDHeader = "X-Taskctl-Run-Id"
	// DefaultNamespace is where the Service, the identity and the ConfigMap of
	// the aggregator are.
	DefaultNamespace = "taskctl-system"
	// ServiceName is the Service that the APIService names.
	ServiceName = "taskctl-aggregator"
	// SequenceName is the ConfigMap that reserves resource versions.
	SequenceName = "taskctl-aggregator-sequence"
)

// Options configure [Run].
type Options struct {
	// Config reaches the API server with the aggregator's identity. Without a
	// QPS of its own there is no limit: the API server's fairness protects it.
	// Required.
	Config *rest.Config
	// Listen opens the listener. It is called once for each Run, last, when
	// everything behind it can answer: a port that accepts and does not answer
	// holds up the API server. Run closes what it returns. Required.
	Listen func(ctx context.Context) (net.Listener, error)
	// CertFile and KeyFile are the serving certificate, PEM, with the DNS name
	// taskctl-aggregator.taskctl-system.svc. They are read again when they
	// change. Required.
	CertFile, KeyFile string
	// RunID is sent in the header [RunIDHeader] of every response, so that a
	// caller can tell which run answered. Default: no header.
	RunID string
	// Namespace of the ConfigMap that reserves resource versions. Default
	// [DefaultNamespace].
	Namespace string
	// Storage is where clustertasks and customtasks are stored, under
	// /registry/search.task.example.example.com. Without it these two are not
	// served.
	Storage *Endpoint
	// Kinds are served beside those of this package.
	Kinds []Kind
	// EventsPerTask is how many Events of a Task are shown, the newest.
	// Default combinedtask.DefaultEventsPerTask.
	EventsPerTask int
	// Log gets a line for what users may want to know. Default: none.
	Log logr.Logger
}

// Endpoint is where an etcd v3 client finds a store. It has the fields of
// endpoint.Endpoint, so that one converts to the other.
type Endpoint struct {
	// URL is unix:///path/to.sock, http://host:port or https://host:port.
	URL string
	// CAFile, CertFile and KeyFile are PEM files for an https URL: the
	// authority that signed the server's certificate, and the client's own
	// certificate and key.
	CAFile, CertFile, KeyFile string
}

func (o Options) complete() (Options, error) {
	switch {
	case o.Config == nil:
		return o, errors.New("no Config: the aggregator needs a rest.Config")
	case o.Listen == nil:
		return o, errors.New("no Listen: the aggregator needs a function that opens its listener")
	case o.CertFile == "" || o.KeyFile == "":
		return o, errors.New("no CertFile or KeyFile: the aggregator needs a serving certificate")
	case o.Storage != nil && o.Storage.URL == "":
		return o, errors.New("no URL in Storage: the aggregator needs one to store clustertasks and customtasks")
	case o.EventsPerTask < 0:
		return o, errors.New("a negative EventsPerTask")
	}
	for _, kind := range o.Kinds {
		if err := kind.check(); err != nil {
			return o, err
		}
	}
	o.Config = rest.CopyConfig(o.Config)
	if o.Config.QPS == 0 {
		o.Config.QPS = -1
	}
	if o.Config.UserAgent == "" {
		o.Config.UserAgent = "taskctl-aggregator"
	}
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	return o, nil
}
