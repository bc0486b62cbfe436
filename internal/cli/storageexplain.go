package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
	"github.com/taskctl-dev/taskctl/storage/admin"
)

func (p *program) storageExplainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "say where an object is stored, and by which rule",
		ArgsUsage: "RESOURCE [NAME] | KEY",
		Description: "RESOURCE is named as for kubectl get: tasks, tk, deployments.apps. A KEY begins with a slash, like\n" +
			"/registry/pods/default/web. Without NAME it is about all objects of the resource, in the namespace if one is given.",
		Flags: append(append([]cli.Flag{
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "`NAMESPACE` of the object", DefaultText: "default, for an object with a namespace"},
		}, storeFlags()...), databaseFlags()...),
		Action: p.storageExplain,
	}
}

// explainResult is the JSON output of storage explain; docs/json.md has it.
type explainResult struct {
	admin.Explanation
	// Where says where the row is, in words; Endpoint is the database's
	// address.
	Where    string `json:"where,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
}

func (p *program) storageExplain(c *cli.Context) error {
	if c.NArg() < 1 || c.NArg() > 2 {
		return usageError("explain needs a resource and a name, like: taskctl storage explain tasks -n default task-sample-1; or one key")
	}
	place, err := p.findStore(c)
	if err != nil {
		return err
	}
	out := p.printer(place.common)
	defer out.close()
	key, prefix, err := keyOf(place, c.String("namespace"), c.Args().Slice())
	if err != nil {
		return err
	}
	found, places, err := p.explained(c, place, out, key, prefix)
	if err != nil {
		return err
	}
	result := explainResult{Explanation: found, Endpoint: places[found.Backend]}
	result.Where = where(found, result.Endpoint, place.dataDir)
	if place.json {
		return out.object(result)
	}
	printExplanation(out, result, prefix)
	return nil
}

func printExplanation(out *printer, e explainResult, prefix bool) {
	line := func(name, format string, args ...any) { out.data("%-9s %s\n", name+":", fmt.Sprintf(format, args...)) }
	line("key", "%s", e.Key)
	if e.Number > 0 {
		line("rule", "%d: %s", e.Number, e.Rule)
	} else {
		line("rule", "%s", e.Rule)
	}
	line("backend", "%s", e.Backend)
	if e.Endpoint != "" {
		line("database", "%s", e.Endpoint)
	}
	switch {
	case prefix:
		line("keys", "%d begin with it", e.Keys)
		if len(e.Backends) > 1 {
			line("backends", "%s may hold some of them, each by the rule of its key", strings.Join(e.Backends, ", "))
		}
	case e.Row != nil:
		line("where", "%s", e.Where)
		line("revision", "%d, created at %d, version %d", e.Row.Mod, e.Row.Create, e.Row.Version)
		if e.Row.Lease != 0 {
			line("lease", "%x", e.Row.Lease)
		}
	default:
		line("where", "there is no such key now; it would be stored there")
	}
}

// where says in words where a row is.
func where(e admin.Explanation, endpoint, dataDir string) string {
	if e.Row == nil {
		return ""
	}
	file, isFile := strings.CutPrefix(endpoint, "sqlite://")
	switch {
	case e.Kind == "etcd":
		return "under its own key"
	case endpoint == "sqlite":
		file, isFile = "store.db", true
	}
	if isFile {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dataDir, file)
		}
		return fmt.Sprintf("row %d of the table versions in %s", e.Row.ID, file)
	}
	if endpoint == "" {
		return fmt.Sprintf("row %d of the table versions", e.Row.ID)
	}
	return fmt.Sprintf("row %d of the table versions in %s", e.Row.ID, endpoint)
}

// explained asks the store, wherever it is. Rules alone answer where there is
// no store yet.
func (p *program) explained(c *cli.Context, place storePlace, out *printer, key string, prefix bool) (e admin.Explanation, places map[string]string, err error) {
	if place.runs() {
		client, err := admin.NewClient(place.endpoint)
		if err != nil {
			return e, nil, usageError("--endpoint: %w", err)
		}
		defer client.Close()
		if place.running {
			chosen, err := storageOf(place.info.State)
			if err != nil {
				return e, nil, err
			}
			places = placesOf(chosen)
		}
		e, err = client.Explain(c.Context, key, prefix)
		if !errors.Is(err, admin.ErrNotServed) {
			return e, places, err
		}
		etcd, err := etcdClient(place.endpoint)
		if err != nil {
			return e, nil, err
		}
		defer etcd.Close()
		e, err = admin.ExplainEtcd(c.Context, etcd, key, prefix)
		return e, places, err
	}
	if !place.info.Exists && !hasDefaultFile(place.dataDir) {
		chosen, err := namedStorage(c, out, embeddedEtcd)
		if err != nil {
			return e, nil, err
		}
		if chosen.IsZero() {
			return e, nil, place.mustExist(c)
		}
		return explainRules(chosen, key, prefix)
	}
	folder, chosen, err := place.own(c, out)
	if err != nil {
		return e, nil, err
	}
	defer folder.Close()
	if isEtcdAlone(chosen) {
		return explainRules(chosen, key, prefix)
	}
	store, err := openFrozen(c.Context, folder, chosen)
	if err != nil {
		return e, nil, err
	}
	return admin.Explain(store, key, prefix), placesOf(chosen), store.Close()
}

func explainRules(chosen config.Storage, key string, prefix bool) (e admin.Explanation, places map[string]string, err error) {
	topology, err := supervisor.Topology(chosen)
	if err != nil {
		return e, nil, err
	}
	router, err := topology.Router()
	if err != nil {
		return e, nil, err
	}
	return admin.ExplainRule(router, key, prefix), placesOf(chosen), nil
}
