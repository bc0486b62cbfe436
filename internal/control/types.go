package control

import "time"

// State is what the whole appliance is doing.
type State string

// The states of an appliance. NotRunning is the command line's: a socket can't
// say it.
const (
	Starting   State = "starting"
	Ready      State = "ready"
	Degraded   State = "degraded" // it was ready, and a component is not at the moment
	Stopping   State = "stopping"
	NotRunning State = "not-running"
)

// Status is what an appliance says of itself. The fields are documented in
// docs/json.md; none is ever taken away or changes its meaning.
type Status struct {
	Name       string      `json:"name"`
	State      State       `json:"state"`
	Version    string      `json:"version,omitempty"`
	PID        int         `json:"pid,omitempty"`
	RunID      string      `json:"runID,omitempty"`
	StartedAt  time.Time   `json:"startedAt,omitzero"`
	Server     string      `json:"server,omitempty"`
	Context    string      `json:"context,omitempty"`
	DataDir    string      `json:"dataDir"`
	Kubeconfig string      `json:"kubeconfig,omitempty"`
	Driver     string      `json:"driver,omitempty"`
	Storage    string      `json:"storage,omitempty"`
	Ephemeral  bool        `json:"ephemeral,omitempty"`
	Memory     *Memory     `json:"memory,omitempty"`
	Components []Component `json:"components,omitempty"`
	// Settings are what the appliance was started with, by flag name.
	Settings map[string]string `json:"settings,omitempty"`
	// LastRun is how the last run ended; the command line fills it in when
	// the appliance does not run.
	LastRun *LastRun `json:"lastRun,omitempty"`
}

// LastRun is how a run ended.
type LastRun struct {
	// End is stopped, failed, or killed (by a signal, a crash, the machine).
	End       string    `json:"end"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	StoppedAt time.Time `json:"stoppedAt,omitzero"`
	// Component, Error and LogFile tell why it failed, or crashed.
	Component string `json:"component,omitempty"`
	Error     string `json:"error,omitempty"`
	LogFile   string `json:"logFile,omitempty"`
}

// Memory is the process's memory in bytes.
type Memory struct {
	// Resident is everything in RAM; Anonymous is the part of it that is not
	// backed by files.
	Resident  int64 `json:"residentBytes"`
	Anonymous int64 `json:"anonymousBytes"`
}

// Component is the state of one part of the appliance.
type Component struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Since     time.Time `json:"since"`
	Restarts  int       `json:"restarts"`
	LastError string    `json:"lastError,omitempty"`
	LogFile   string    `json:"logFile,omitempty"`
}

// stopAnswer tells which process stops, so that its end can be told from that
// of a process that follows it.
type stopAnswer struct {
	PID int `json:"pid"`
}

type errorBody struct {
	Error string `json:"error"`
}
