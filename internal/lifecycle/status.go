package lifecycle

import "time"

// State is what a component is doing.
type State string

// The states in the order in which a component normally passes through them.
const (
	// Waiting: a need is not ready yet.
	Waiting State = "waiting"
	// Starting: Run was called and has not called ready yet.
	Starting State = "starting"
	// Ready: Run called ready.
	Ready State = "ready"
	// BackingOff: Run ended and is called again after a pause.
	BackingOff State = "backing-off"
	// Stopping: the context of Run ended and Run has not returned yet.
	Stopping State = "stopping"
	// Stopped: Run returned, or was never called, because the group stops.
	Stopped State = "stopped"
	// Failed: Run ended or was given up, and is not called again.
	Failed State = "failed"
)

// Status is a component's state at one moment.
type Status struct {
	Name  string
	State State
	// Since is when State began.
	Since time.Time
	// Restarts counts how often Run was called again.
	Restarts int
	// LastError is the text of the newest error, empty if there was none. It
	// stays after a successful restart.
	LastError string
	// LogFile is the component's log file, if it has one.
	LogFile string
}
