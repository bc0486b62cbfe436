package cli

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
	"github.com/taskctl-dev/taskctl/storage"
)

func (p *program) storageMoveCommand() *cli.Command {
	return &cli.Command{
		Name:  "move",
		Usage: "bring keys to where changed routes look for them",
		Description: "The appliance must not run. Revisions, versions and leases are kept. If it is cut short, nothing is lost:\n" +
			"run it again. Without -f or --storage the keys go where a new appliance keeps them. See docs/storage.md.",
		Flags:  databaseFlags(),
		Action: noArguments(p.storageMove),
	}
}

// moveResult is the JSON output of storage move; docs/json.md has it.
type moveResult struct {
	Storage string `json:"storage"`
	storage.Moved
}

func (p *program) storageMove(c *cli.Context) error {
	place, err := p.findStore(c)
	if err != nil {
		return err
	}
	if place.runs() {
		return fmt.Errorf("the appliance %q is running: stop it first with taskctl down%s", place.name, place.nameFlag())
	}
	out := p.printer(place.common)
	defer out.close()
	chosen, err := namedStorage(c, out, embeddedEtcd)
	if err != nil {
		return err
	}
	if chosen.IsZero() {
		chosen = supervisor.DefaultStorage()
	}
	if isEtcdAlone(chosen) {
		return usageError("keys can't be moved into an etcd that the API server talks to directly: use storage backup and storage restore --replace")
	}
	folder, err := datadir.Open(place.dataDir, place.name)
	if err != nil {
		return err
	}
	moved, err := moveIn(c, out, folder, chosen)
	if err = errors.Join(err, folder.Close()); err != nil {
		return err
	}
	out.message("moved %d keys (sha256 %s); the store goes on at revision %d", moved.Keys, moved.SHA256[:12], moved.Revision)
	if place.json {
		return out.object(moveResult{chosen.String(), moved})
	}
	return nil
}

func moveIn(c *cli.Context, out *printer, folder *datadir.Folder, chosen config.Storage) (storage.Moved, error) {
	recorded := folder.State().Storage
	if err := refuseHalfRestored(folder.Path); err != nil {
		return storage.Moved{}, err
	}
	if err := checkChange(folder, recorded, chosen); err != nil {
		return storage.Moved{}, err
	}
	if err := folder.Prepare(); err != nil {
		return storage.Moved{}, err
	}
	settings, err := storeConfig(folder, chosen)
	if err != nil {
		return storage.Moved{}, err
	}
	moved, err := storage.Move(c.Context, settings, func(step string, done, total int) {
		out.progress("%s %d of %d keys", step, done, total)
	})
	if err != nil || recorded == "" {
		return moved, err
	}
	kept, err := keptTopology(chosen)
	if err != nil {
		return moved, err
	}
	return moved, folder.Update(func(s *datadir.State) { s.Storage, s.Topology = chosen.String(), kept })
}
