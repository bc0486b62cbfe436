package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
	"github.com/taskctl-dev/taskctl/storage"
)

// storeFlags say which store a command means, beside the common flags: the
// appliance's own, or one that is served elsewhere.
func storeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "endpoint", Usage: "`URL` of a running `taskctl storage serve`, instead of the appliance's store"},
		&cli.StringFlag{Name: "cacert", Usage: "`FILE` with the authorities of an https endpoint"},
		&cli.StringFlag{Name: "cert", Usage: "client certificate `FILE` for an https endpoint"},
		&cli.StringFlag{Name: "key", Usage: "`FILE` with the certificate's key"},
	}
}

// databaseFlags say where a store that does not run keeps its objects.
func databaseFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "configuration `FILE`, of which the storage section counts; flags win over it"},
		storageFlag("what the data folder was made with"),
		topologyFlag(),
	}
}

// storePlace is where a command finds its store: at an endpoint if it runs,
// else in a folder.
type storePlace struct {
	common
	endpoint storage.Endpoint // its URL is "" if the store does not run
	// running says that the endpoint is the appliance's own.
	running bool
	// info is what is seen of the data folder.
	info datadir.Info
}

// findStore finds the store that a command means.
func (p *program) findStore(c *cli.Context) (storePlace, error) {
	values, err := p.common(c)
	place := storePlace{common: values}
	if err != nil {
		return place, err
	}
	if url := c.String("endpoint"); url != "" {
		place.endpoint = storage.Endpoint{URL: url, CAFile: c.String("cacert"), CertFile: c.String("cert"), KeyFile: c.String("key")}
		return place, nil
	}
	if place.info, err = datadir.Inspect(values.dataDir); err != nil {
		return place, err
	}
	switch {
	case !place.info.Held:
	case place.info.Exists && place.info.State.PID == place.info.PID:
		place.running = true
		place.endpoint.URL = "unix://" + place.info.State.EtcdSocket()
	default:
		return place, fmt.Errorf("the process %d owns %s and is no appliance: name the URL of its store with --endpoint, or stop it first", place.info.PID, values.dataDir)
	}
	return place, nil
}

// runs says that the store is asked at an endpoint.
func (s *storePlace) runs() bool { return s.endpoint.URL != "" }

// own takes the folder of a store that does not run, and finds out where it
// keeps its objects. The caller closes the folder.
func (s *storePlace) own(c *cli.Context, out *printer) (folder *datadir.Folder, chosen config.Storage, err error) {
	if s.info.Exists {
		folder, err = datadir.Open(s.dataDir, s.name)
	} else {
		folder, err = datadir.OpenBare(s.dataDir)
	}
	if err != nil {
		return nil, chosen, err
	}
	chosen, err = s.databases(c, out, folder)
	if err == nil && s.info.Exists {
		err = folder.Prepare() // an embedded etcd needs a socket
	}
	if err != nil {
		return nil, chosen, errors.Join(err, folder.Close())
	}
	return folder, chosen, nil
}

// databases are those of the flags, or those that the folder was made with.
func (s *storePlace) databases(c *cli.Context, out *printer, folder *datadir.Folder) (config.Storage, error) {
	if c.String("file") != "" || c.String("storage") != "" || c.String("topology") != "" {
		return namedStorage(c, out, embeddedEtcd)
	}
	switch {
	case s.info.Exists && folder.State().Storage != "":
		return recordedStorage(folder)
	case hasDefaultFile(folder.Path):
		return config.FromSpec(defaultServed), nil
	}
	return config.Storage{}, usageError("it is not known where the objects of %s are stored: name it with --storage, -f or --topology", s.dataDir)
}

// hasDefaultFile says that `storage serve` has made its default file there.
func hasDefaultFile(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "store.db"))
	return err == nil
}

// namedStorage is what -f, --storage and --topology name, zero if none does.
// fallback is the database of what a topology leaves out.
func namedStorage(c *cli.Context, out *printer, fallback string) (config.Storage, error) {
	chosen := config.FromSpec(c.String("storage"))
	if name := c.String("file"); name != "" {
		file, err := config.Read(name)
		if err != nil {
			return chosen, usageError("%w", err)
		}
		if err := checkSupported(file, c.IsSet("storage")); err != nil {
			return chosen, usageError("%w", err)
		}
		if err := refuseTwoTopologies(c, file); err != nil {
			return chosen, err
		}
		if !c.IsSet("storage") && c.String("topology") == "" && file.Storage.Line != 0 {
			if chosen, err = readStorage(file); err != nil {
				return chosen, err
			}
		}
	}
	if c.String("topology") != "" {
		read, notices, err := readTopology(c, cmp.Or(c.String("storage"), fallback))
		for _, notice := range notices {
			out.message("note: %s", notice)
		}
		return read, err
	}
	if err := supervisor.CheckStorage(chosen); err != nil {
		return chosen, usageError("%w", err)
	}
	return chosen, nil
}

// storeConfig is how the databases of a folder are opened.
func storeConfig(folder *datadir.Folder, chosen config.Storage) (storage.Config, error) {
	topology, err := supervisor.Topology(chosen)
	settings := storage.Config{Topology: topology, DataDir: folder.Path}
	if folder.State().SocketDir != "" {
		settings.Etcd = storage.EmbeddedEtcd{Dir: folder.Etcd(), Socket: folder.MemberSocket()}
	}
	return settings, err
}

// openFrozen opens a store that does not run, to look at it.
func openFrozen(ctx context.Context, folder *datadir.Folder, chosen config.Storage) (*storage.Store, error) {
	settings, err := storeConfig(folder, chosen)
	if err != nil {
		return nil, err
	}
	settings.Frozen = true
	return storage.Open(ctx, settings)
}
