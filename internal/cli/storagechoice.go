package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// chooseStorage completes the storage by what the folder was made with, and
// refuses another one: the objects that are there would seem to be lost.
func chooseStorage(up *upConfig, folder *datadir.Folder) error {
	asked, recorded := up.options.Storage, folder.State().Storage
	switch {
	case recorded == "" && asked.IsZero():
		up.options.Storage = supervisor.DefaultStorage()
	case recorded == "", asked.String() == recorded:
	case !asked.IsZero():
		// The store itself refuses what would strand keys.
		if err := checkChange(folder, recorded, asked); err != nil {
			return err
		}
	default:
		var err error
		if up.options.Storage, err = recordedStorage(folder); err != nil {
			return err
		}
	}
	up.options.Settings["storage"] = up.options.Storage.String()
	return nil
}

// checkChange refuses a change of the storage to or from an etcd that the API
// server talks to directly, unless that etcd stays a backend.
func checkChange(folder *datadir.Folder, recorded string, asked config.Storage) error {
	stays := slices.ContainsFunc(asked.Backends, func(b config.Backend) bool { return config.FromSpec(b.Endpoint).String() == embeddedEtcd })
	if recorded == "" || !isEtcdAlone(asked) && (recorded != embeddedEtcd || stays) {
		return nil
	}
	return fmt.Errorf("the objects of %s are stored in %s, and would seem lost in %s: leave --storage and -f out, choose another --name, or %s",
		folder.Path, recorded, asked, startAnew(folder))
}

// startAnew is how a folder loses its objects: --recreate of a kind cluster
// keeps them.
func startAnew(folder *datadir.Folder) string {
	if state := folder.State(); state.Driver == supervisor.KindDriver {
		return "delete them with taskctl down --purge" + common{name: state.Name}.nameFlag()
	}
	return "start anew with --recreate"
}

// recordedStorage is the storage that the folder was made with, with its
// passwords read.
func recordedStorage(folder *datadir.Folder) (config.Storage, error) {
	state := folder.State()
	chosen, err := storageOf(state)
	if err != nil {
		return chosen, err
	}
	if chosen.HidesPassword() {
		return chosen, fmt.Errorf("the objects of %s are stored in %s, whose password is not kept: give it again with -f FILE, or with %s in the environment",
			folder.Path, state.Storage, storageVariable)
	}
	if err := chosen.ReadPasswords(os.Getenv); err != nil {
		return chosen, fmt.Errorf("the objects of %s are stored in %s: %w; set it, or give the storage again with -f FILE", folder.Path, state.Storage, err)
	}
	return chosen, nil
}

// storageOf is what state.json keeps of the storage, without passwords.
func storageOf(state datadir.State) (config.Storage, error) {
	chosen := config.FromSpec(state.Storage)
	if len(state.Topology) > 0 {
		chosen = config.Storage{}
		if err := json.Unmarshal(state.Topology, &chosen); err != nil {
			return chosen, fmt.Errorf("the storage of %s that is kept in state.json can't be read (%w): give it again with -f FILE", state.Path, err)
		}
	}
	return chosen, nil
}

// keptTopology is what state.json keeps of a storage that a SPEC can't name.
func keptTopology(chosen config.Storage) (json.RawMessage, error) {
	if len(chosen.Backends) == 1 && chosen.Backends[0].IsSpec() {
		return nil, nil
	}
	kept, err := json.Marshal(chosen.Redacted())
	if err != nil {
		return nil, fmt.Errorf("keeping the storage in state.json: %w", err)
	}
	return kept, nil
}
