package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/storage/admin"
)

func (p *program) storageRoutesCommand() *cli.Command {
	return &cli.Command{
		Name:        "routes",
		Usage:       "print the rules and what each backend holds: keys, bytes, writes per second",
		Description: "The rate is measured for one second. The first rule that matches a key decides.",
		Flags:       append(storeFlags(), databaseFlags()...),
		Action:      noArguments(p.storageRoutes),
	}
}

func (p *program) storageRoutes(c *cli.Context) error {
	place, err := p.findStore(c)
	if err != nil {
		return err
	}
	out := p.printer(place.common)
	defer out.close()
	out.progress("counting keys")
	routes, err := p.routesOf(c, place, out)
	if err != nil {
		return err
	}
	if place.json {
		return out.object(routes)
	}
	table := tabwriter.NewWriter(p.env.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "RULE\tBACKEND\tKEYS")
	for _, rule := range routes.Rules {
		fmt.Fprintf(table, "%s\t%s\t%d\n", rule.Rule, rule.Backend, rule.Keys)
	}
	fmt.Fprintln(table, "\nBACKEND\tKIND\tKEYS\tBYTES\tIN USE\tWRITES/S\tREVISION\tSTATE")
	for _, b := range routes.Backends {
		state := "up"
		if b.Down != "" {
			state = "down: " + b.Down
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%.1f\t%d\t%s\n", b.Name, b.Kind, b.Keys, b.Bytes, b.InUse, b.WritesPerSecond, b.Revision, state)
	}
	return table.Flush()
}

// routesOf asks the store, wherever it is.
func (p *program) routesOf(c *cli.Context, place storePlace, out *printer) (admin.Routes, error) {
	if place.runs() {
		client, err := admin.NewClient(place.endpoint)
		if err != nil {
			return admin.Routes{}, usageError("--endpoint: %w", err)
		}
		defer client.Close()
		routes, err := client.Routes(c.Context)
		if errors.Is(err, admin.ErrNotServed) {
			return routesOfEtcd(c, place)
		}
		return routes, err
	}
	if err := place.mustExist(c); err != nil {
		return admin.Routes{}, err
	}
	folder, chosen, err := place.own(c, out)
	if err != nil {
		return admin.Routes{}, err
	}
	defer folder.Close()
	if isEtcdAlone(chosen) {
		return admin.Routes{}, notRunning(place.common)
	}
	store, err := openFrozen(c.Context, folder, chosen)
	if err != nil {
		return admin.Routes{}, err
	}
	routes, err := admin.ListRoutes(c.Context, store, 0)
	return routes, errors.Join(err, store.Close())
}

// routesOfEtcd is what is to say of an etcd that keeps everything.
func routesOfEtcd(c *cli.Context, place storePlace) (admin.Routes, error) {
	client, err := etcdClient(place.endpoint)
	if err != nil {
		return admin.Routes{}, err
	}
	defer client.Close()
	return admin.RoutesOfEtcd(c.Context, client, place.endpoint.URL)
}

// mustExist refuses a folder in which there was never a store, and no flag
// names one.
func (s *storePlace) mustExist(c *cli.Context) error {
	if s.info.Exists || hasDefaultFile(s.dataDir) || c.String("storage")+c.String("file")+c.String("topology") != "" {
		return nil
	}
	return fmt.Errorf("there is no store in %s: name another folder with --data-dir, or a running store with --endpoint", s.dataDir)
}

// placesOf are the addresses of the backends, by name, without passwords.
func placesOf(chosen config.Storage) map[string]string {
	places := map[string]string{}
	for _, b := range chosen.Redacted().Backends {
		places[b.Name] = b.Endpoint
	}
	return places
}
