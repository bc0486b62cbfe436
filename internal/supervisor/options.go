package supervisor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taskctl-dev/taskctl/cluster/kind"
	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
)

// The names of the components, as status, logs and --without have them.
const (
	Certificates      = "certificates"
	Storage           = "storage"
	APIServer         = "apiserver"
	Cleanup           = "cleanup"
	ControllerManager = "controller-manager"
	Node              = "node"
	Manifests         = "manifests"
	Operator          = "operator"
	Webhooks          = "webhooks"
	Aggregator        = "aggregator"
	Registration      = "registration"
)

// The drivers: where the API server comes from.
const (
	EmbeddedDriver = "embedded"
	KindDriver     = "kind"
)

// Components are all components, in an order in which they can start.
func Components() []string {
	return []string{Certificates, Storage, APIServer, Cleanup, ControllerManager, Node, Manifests, Operator, Webhooks, Aggregator, Registration}
}

// Removable are the components that may be left out. What is left without all
// of them is a bare API server on its store.
func Removable() []string {
	return []string{ControllerManager, Manifests, Operator, Webhooks, Aggregator, Registration}
}

// CheckWithout refuses a set of components that can't be left out, or not
// without others.
func CheckWithout(names []string) error {
	for _, name := range names {
		if !slices.Contains(Removable(), name) {
			return fmt.Errorf("the component %q can't be left out; these can: %s", name, strings.Join(Removable(), ", "))
		}
	}
	if !slices.Contains(names, Manifests) {
		return nil
	}
	for _, name := range []string{Operator, Webhooks, Aggregator, Registration} {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the component %q works on what %q installs: leave it out too, or neither", name, Manifests)
		}
	}
	return nil
}

// Options describe one run of an appliance.
type Options struct {
	// Folder is the data folder. The caller owns it, and closes it after Run.
	Folder *datadir.Folder
	// Name is the appliance's name.
	Name string
	// Driver is EmbeddedDriver or KindDriver; "" is the former.
	Driver string
	// Kind is for KindDriver.
	Kind KindOptions
	// Storage is where objects are stored, with its passwords read; the zero
	// one is [DefaultStorage].
	Storage config.Storage
	// StorageKept is what state.json keeps of it (see datadir.State.Topology)
	// once the store has opened with it.
	StorageKept json.RawMessage
	// Port is the API server's port on 127.0.0.1; 0 is the one from before,
	// or a free one.
	Port int
	// Without names components that are left out; see Removable.
	Without []string
	// APIServerArgs are flags of kube-apiserver, without dashes.
	APIServerArgs map[string][]string
	// Wait is how long everything together may take to be ready.
	Wait time.Duration
	// Verbosity is the level of detail of the logs.
	Verbosity int
	// Kubeconfig is the file that the context is merged into; "" is none.
	Kubeconfig string
	// SwitchContext makes the context the current one of Kubeconfig.
	SwitchContext bool
	// Settings are recorded for a later `up` to compare with.
	Settings map[string]string
	// CertificateLifetime shortens the certificates' lifetime, for tests of
	// their renewal; 0 is the default.
	CertificateLifetime time.Duration
	// OnEvent is told what happens, one event at a time. It must not block.
	OnEvent func(Event)
}

func (o Options) check() error {
	if err := CheckWithout(o.Without); err != nil {
		return err
	}
	if o.Driver == KindDriver && slices.Contains(o.Without, ControllerManager) {
		return fmt.Errorf("the component %q can't be left out with --cluster kind: it runs in the node", ControllerManager)
	}
	if err := kind.CheckSection(o.Kind.Section); err != nil {
		return err
	}
	return CheckStorage(o.Storage)
}

// EventKind says what an Event is about.
type EventKind string

// The kinds of events. Documented in docs/json.md.
const (
	ComponentEvent EventKind = "component" // a component changed its state
	NoticeEvent    EventKind = "notice"    // something that people should know
	ProgressEvent  EventKind = "progress"  // what is going on within a step
	ReadyEvent     EventKind = "ready"     // everything answers
	StoppingEvent  EventKind = "stopping"  // an ordered stop began
	StoppedEvent   EventKind = "stopped"   // an ordered stop ended
	FailedEvent    EventKind = "failed"    // the appliance could not start, or go on
)

// Event is one thing that happened. The JSON field names are documented in
// docs/json.md; the fields that are filled in depend on the kind.
type Event struct {
	Kind EventKind `json:"event"`
	Time time.Time `json:"time"`
	// Component, State and Reason: a ComponentEvent. Component, Reason and
	// LogFile: a FailedEvent that a component is to blame for.
	Component string `json:"component,omitempty"`
	State     string `json:"state,omitempty"`
	Reason    string `json:"error,omitempty"`
	LogFile   string `json:"logFile,omitempty"`
	// LogLines are the last lines of LogFile, of a FailedEvent: the file may
	// be deleted in a moment.
	LogLines []string `json:"logLines,omitempty"`
	// Message: a NoticeEvent, a ProgressEvent.
	Message string `json:"message,omitempty"`

	// The rest: a ReadyEvent.
	Name       string `json:"name,omitempty"`
	Driver     string `json:"driver,omitempty"`
	Server     string `json:"server,omitempty"`
	Context    string `json:"context,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	DataDir    string `json:"dataDir,omitempty"`
	PID        int    `json:"pid,omitempty"`
	RunID      string `json:"runID,omitempty"`
	// AlreadyRunning says that the appliance was ready before this start.
	AlreadyRunning bool `json:"alreadyRunning,omitempty"`
	// StartupSeconds is the time from the start of Run to ready.
	StartupSeconds float64 `json:"startupSeconds,omitempty"`
}
