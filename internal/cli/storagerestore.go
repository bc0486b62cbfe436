package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backup"
)

func (p *program) storageRestoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "bring a backup back, into the same databases or others",
		ArgsUsage: "FILE",
		Description: "The appliance must not run. The file is checked as a whole before anything is changed. Revisions never go\n" +
			"back: the store goes on far above all that the old one can have shown. See docs/storage.md.",
		Flags:  append(databaseFlags(), &cli.BoolFlag{Name: "replace", Usage: "delete what the databases hold first; without it they must be empty"}),
		Action: p.storageRestore,
	}
}

// restoreResult is the JSON output of storage restore; docs/json.md has it.
type restoreResult struct {
	File    string `json:"file"`
	Storage string `json:"storage"`
	backup.Restored
}

func (p *program) storageRestore(c *cli.Context) error {
	if c.NArg() != 1 {
		return usageError("restore needs the name of one file, like: taskctl storage restore tasks.backup")
	}
	name, err := filepath.Abs(c.Args().First())
	if err != nil {
		return err
	}
	place, err := p.findStore(c)
	if err != nil {
		return err
	}
	if place.runs() {
		return fmt.Errorf("the appliance %q is running: stop it first with taskctl down%s", place.name, place.nameFlag())
	}
	out := p.printer(place.common)
	defer out.close()
	if err := checkBackup(name); err != nil {
		return err
	}
	folder, err := datadir.Open(place.dataDir, place.name)
	if err != nil {
		return err
	}
	chosen, err := restoredStorage(c, out, folder)
	if err == nil {
		err = folder.Prepare()
	}
	if err != nil {
		return errors.Join(err, folder.Abandon())
	}
	out.progress("restoring %s", name)
	done, err := restoreInto(c.Context, folder, chosen, name, c.Bool("replace"))
	if err != nil {
		return errors.Join(err, folder.Close())
	}
	if err := folder.Close(); err != nil {
		return err
	}
	var parts []string
	for _, backend := range slices.Sorted(maps.Keys(done.ByBackend)) {
		parts = append(parts, fmt.Sprintf("%d in %s", done.ByBackend[backend], backend))
	}
	out.message("restored %d keys (%s) and %d leases of revision %d; the store goes on at %d",
		done.Rows, strings.Join(parts, ", "), done.Leases, done.Revision, done.Start)
	if place.json {
		return out.object(restoreResult{File: name, Storage: chosen.String(), Restored: done})
	}
	return nil
}

// checkBackup reads a whole file, so that a damaged one is found before a
// folder is made.
func checkBackup(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading the backup: %w", err)
	}
	defer file.Close()
	if _, err := backup.Check(file); err != nil {
		return fmt.Errorf("%s: %w; nothing was changed", name, err)
	}
	return nil
}

// restoredStorage is where the backup goes: what the flags name, or what the
// folder was made with, or the default. Another place than before is taken only
// to replace what there is.
func restoredStorage(c *cli.Context, out *printer, folder *datadir.Folder) (config.Storage, error) {
	chosen, err := namedStorage(c, out, embeddedEtcd)
	if err != nil {
		return chosen, err
	}
	recorded := folder.State().Storage
	switch {
	case chosen.IsZero() && recorded != "":
		chosen, err = recordedStorage(folder)
	case chosen.IsZero():
		chosen = supervisor.DefaultStorage()
	case recorded != "" && chosen.String() != recorded && !c.Bool("replace"):
		err = fmt.Errorf("the objects of %s are stored in %s, and would seem lost in %s: leave the storage out, choose another --data-dir, or give them up with --replace",
			folder.Path, recorded, chosen)
	}
	return chosen, err
}

// restoreInto restores the file. While it does, and after it has failed half
// way, the folder says so, and nothing else starts on it.
func restoreInto(ctx context.Context, folder *datadir.Folder, chosen config.Storage, name string, replace bool) (backup.Restored, error) {
	kept, err := keptTopology(chosen)
	if err != nil {
		return backup.Restored{}, err
	}
	open := func() (io.ReadCloser, error) { return os.Open(name) }
	changing := func() error {
		if err := storage.ForgetPlaces(folder.Path); err != nil {
			return err
		}
		return folder.Update(func(s *datadir.State) {
			s.Storage, s.Topology, s.Restoring = chosen.String(), kept, name
		})
	}
	replace = replace || folder.State().Restoring != ""
	var done backup.Restored
	if isEtcdAlone(chosen) {
		done, err = restoreEtcd(ctx, folder, open, replace, changing)
	} else {
		done, err = restoreDatabases(ctx, folder, chosen, open, replace, changing)
	}
	var notEmpty *backup.NotEmptyError
	switch {
	case errors.As(err, &notEmpty) && notEmpty.Stays:
		return done, fmt.Errorf("%w: nothing was changed; use an empty etcd, or delete its keys with etcdctl first", err)
	case errors.As(err, &notEmpty):
		return done, fmt.Errorf("%w: nothing was changed; to delete what it holds, say --replace", err)
	case err != nil:
		return done, err
	}
	return done, folder.Update(func(s *datadir.State) { s.Restoring = "" })
}

func restoreDatabases(ctx context.Context, folder *datadir.Folder, chosen config.Storage, open func() (io.ReadCloser, error), replace bool, changing func() error) (backup.Restored, error) {
	settings, err := storeConfig(folder, chosen)
	if err != nil {
		return backup.Restored{}, err
	}
	databases, err := storage.OpenDatabases(ctx, settings)
	if err != nil {
		return backup.Restored{}, err
	}
	target := backup.Target{Route: databases.Router.Route, Above: databases.Reserved, Replace: replace, Changing: changing}
	for i, b := range databases.Backends {
		one := backup.Backend{Name: b.Name, Session: b.Session, KeepsKeys: b.Kind == "etcd" && !b.Embedded}
		if b.Embedded {
			one.Renew = func(ctx context.Context) (backend.Session, error) { return databases.Renew(ctx, i) }
		}
		target.Backends = append(target.Backends, one)
	}
	done, err := backup.Restore(ctx, open, target)
	return done, errors.Join(err, databases.Close())
}

// refuseHalfRestored refuses a folder whose restore has not come to its end.
func refuseHalfRestored(path string) error {
	state, err := datadir.ReadState(path)
	if err != nil || state.Restoring == "" {
		return nil // who needs state.json says what is wrong with it
	}
	return fmt.Errorf("the restore of %s into %s has not come to its end, and a part is missing: run it again with taskctl storage restore %s --data-dir %s",
		state.Restoring, path, state.Restoring, path)
}
