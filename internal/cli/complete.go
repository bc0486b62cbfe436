package cli

import (
	"slices"

	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// values are candidates for the value of a flag; none means files.
func (p *program) values(flag string) []string {
	switch flag {
	case "name":
		root, err := datadir.Root(p.env.Getenv)
		if err != nil {
			return nil
		}
		names, err := datadir.Names(root)
		if err != nil {
			return nil
		}
		for i := range names {
			names[i] += "\tan appliance"
		}
		return names
	case "output", "o":
		return []string{"text\tfor people", "json\tfor programs"}
	case "cluster":
		return []string{"auto\twhat fits", "embedded\tin this process"}
	case "storage":
		return []string{"etcd\tthe embedded etcd"}
	case "without":
		var candidates []string
		for _, name := range supervisor.Removable() {
			candidates = append(candidates, name+"\ta component")
		}
		return candidates
	}
	return nil
}

func componentCandidates() []string {
	var candidates []string
	for _, name := range supervisor.Components() {
		candidates = append(candidates, name+"\ta component")
	}
	return append(candidates, "supervisor\twhat happened to the components")
}

// completeKubectl lets kubectl complete its own command line. Our flags before
// it are read for the name of the appliance.
func (p *program) completeKubectl(before, words []string) error {
	arguments := append(slices.Clone(before), "kubectl", "__complete")
	arguments = append(arguments, words...)
	app := p.app()
	return app.Run(append([]string{"taskctl"}, arguments...))
}
