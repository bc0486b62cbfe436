package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/taskctl-dev/taskctl/internal/version"
)

// Format is the version of state.json and of the folder's layout that this
// program writes and the newest that it reads.
const Format = 1

const stateFile = "state.json"

// State is what state.json says.
type State struct {
	// Version is the Format of the program that wrote it.
	Version int `json:"version"`
	// Program is the taskctl version that wrote it.
	Program string `json:"program"`
	// Name is the appliance's name; contexts in kubeconfigs follow from it.
	Name string `json:"name"`
	// Path is the folder's absolute path at that time; another one means
	// that the folder was copied or moved.
	Path string `json:"path"`
	// Driver is where the API server comes from: embedded or kind.
	Driver string `json:"driver"`
	// Node is the node of the kind driver, nil with another one.
	Node *Node `json:"node,omitempty"`
	// Storage is where the folder's objects are stored, in one line without
	// passwords; for one database it is its --storage SPEC.
	Storage string `json:"storage,omitempty"`
	// Topology is the same in full, for several databases; it is the storage
	// section of the configuration file, without passwords.
	Topology json.RawMessage `json:"topology,omitempty"`
	// Restoring is the backup that is being restored into the folder's
	// databases; they hold a part of it.
	Restoring string `json:"restoring,omitempty"`
	// Ephemeral folders are deleted when their appliance ends.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// Settings are those that the running, or last, appliance was started
	// with, by flag name; passwords are not among them.
	Settings map[string]string `json:"settings,omitempty"`
	// Ports are the TCP ports, by component.
	Ports map[string]int `json:"ports,omitempty"`
	// SocketDir holds the sockets; it is run/ or a short folder elsewhere.
	SocketDir string `json:"socketDir,omitempty"`
	// RunID names one run of the appliance.
	RunID string `json:"runID,omitempty"`
	// PID is the process of that run; it lives only while the lock is held.
	PID int `json:"pid,omitempty"`
	// StartedAt is when that run began.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// StoppedAt is when the last run ended by itself; zero while it runs, and
	// after it was killed.
	StoppedAt time.Time `json:"stoppedAt,omitzero"`
	// Failure is why the last run ended, nil if it was stopped in order.
	Failure *Failure `json:"failure,omitempty"`
	// Kubeconfig is what was merged into a kubeconfig of the user, to be
	// taken out again; nil if nothing was.
	Kubeconfig *Merged `json:"kubeconfig,omitempty"`
}

// clone copies what the maps and pointers of s point to as well.
func (s State) clone() State {
	s.Settings, s.Ports = maps.Clone(s.Settings), maps.Clone(s.Ports)
	if s.Kubeconfig != nil {
		merged := *s.Kubeconfig
		s.Kubeconfig = &merged
	}
	if s.Node != nil {
		node := *s.Node
		s.Node = &node
	}
	if s.Failure != nil {
		failure := *s.Failure
		s.Failure = &failure
	}
	return s
}

// Node is a container that belongs to the folder.
type Node struct {
	// Engine is the container engine's program.
	Engine string `json:"engine"`
	// Cluster is kind's name of the cluster.
	Cluster string `json:"cluster"`
	// Image is what the node was made from.
	Image string `json:"image"`
	// Settings are what else it was made with, to compare later ones with.
	Settings string `json:"settings,omitempty"`
	// Complete says that its making was not cut short.
	Complete bool `json:"complete,omitempty"`
	// Used says that some node of this folder was complete: there are objects
	// that somebody could miss.
	Used bool `json:"used,omitempty"`
}

// Failure is why a run ended.
type Failure struct {
	// Component is to blame; "" if none is.
	Component string `json:"component,omitempty"`
	Reason    string `json:"error"`
	LogFile   string `json:"logFile,omitempty"`
}

// Merged records an entry in a user's kubeconfig.
type Merged struct {
	// File is the absolute path.
	File string `json:"file"`
	// Context is the name of our context, cluster and user.
	Context string `json:"context"`
	// FormerContext was the current context before ours became it.
	FormerContext string `json:"formerContext,omitempty"`
	// Created says that the file did not exist before.
	Created bool `json:"created,omitempty"`
}

// NewerError says that the folder belongs to a newer version of this program.
type NewerError struct {
	Path    string
	Program string
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the data folder %s was made by a newer taskctl (%s; this is %s): use that version, or another folder with --data-dir",
		e.Path, e.Program, version.String())
}

// ReadState reads state.json; an error that is os.ErrNotExist means that there
// is none.
func ReadState(path string) (State, error) {
	file := filepath.Join(path, stateFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return State{}, err
	}
	var state State
	if err := json.Unmarshal(text, &state); err != nil {
		return State{}, fmt.Errorf("%s is damaged (%w): delete the file to start with the folder's data and new ports, or the folder to start anew", file, err)
	}
	if state.Version > Format {
		return State{}, &NewerError{Path: path, Program: state.Program}
	}
	return state, nil
}

// writeState replaces state.json in one step, so that a crash or a full disk
// leaves the old one.
func writeState(path string, state State) error {
	text, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(path, stateFile), append(text, '\n'), 0o600)
}

// WriteFile writes a file durably and in one step: readers see the old content
// or the new one.
func WriteFile(path string, content []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
