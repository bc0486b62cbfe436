package datadir

import (
	"errors"
	"os"
	"path/filepath"
)

// Info is what can be seen of a folder from outside.
type Info struct {
	// Exists says that an appliance was started in the folder before.
	Exists bool
	// Held says that a living process owns the folder, PID which (0 if it
	// has just begun).
	Held bool
	PID  int
	// State is state.json; it may be another run's while Held.
	State State
}

// Inspect looks at a data folder without owning it. A folder that is missing,
// or not ours, is an Info without Exists. An error that is a *NewerError comes
// with Held and PID filled in.
func Inspect(path string) (Info, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Info{}, err
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	var info Info
	if info.PID, info.Held, err = owner(path); err != nil {
		return Info{}, notUsable(path, err)
	}
	state, err := ReadState(path)
	if errors.Is(err, os.ErrNotExist) {
		return info, nil
	}
	info.Exists, info.State = true, state
	return info, err
}
