package cli

import (
	"fmt"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// chooseStorage completes the storage by what the folder was made with, and
// refuses another one: the objects that are there would seem to be lost.
func chooseStorage(up *upConfig, folder *datadir.Folder) error {
	asked, recorded := up.options.Storage, folder.State().Storage
	switch {
	case recorded == "" && asked == "":
		up.options.Storage = supervisor.DefaultStorage
	case recorded == "", redacted(asked) == recorded:
	case asked != "":
		return fmt.Errorf("the objects of %s are stored in %s, and would seem lost in %s: leave --storage out, choose another --name, or start anew with --recreate",
			folder.Path, recorded, redacted(asked))
	case config.HidesPassword(recorded):
		return fmt.Errorf("the objects of %s are stored in %s, whose password is not kept: give it again with -f FILE, or with %s in the environment",
			folder.Path, recorded, storageVariable)
	default:
		up.options.Storage = recorded
	}
	up.options.Settings["storage"] = redacted(up.options.Storage)
	return nil
}

// redacted is a --storage SPEC without its password, for people and for files.
func redacted(spec string) string {
	if config.Scheme(spec) == "" {
		return spec // etcd, sqlite
	}
	return config.Redacted(spec)
}
