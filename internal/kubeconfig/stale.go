package kubeconfig

import (
	"context"
	"errors"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/taskctl-dev/taskctl/internal/datadir"
)

// Stale are the contexts of ours in the file whose appliance is not running: it
// was killed, and not started again since. A file that is missing has none.
func Stale(file string) ([]string, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, advice(file, err)
	}
	document, err := decode(content)
	if err != nil {
		return nil, advice(file, err)
	}
	return staleIn(document), nil
}

// RemoveStale takes the contexts that Stale names out of the file, with their
// clusters and users.
func RemoveStale(ctx context.Context, file string) (removed []string, err error) {
	err = edit(ctx, file, false, func(document *yaml.Node, _ bool) error {
		removed = staleIn(document)
		for _, name := range removed {
			take(document, name, ownerOf(get(find(document, "contexts", name), "context")), "")
		}
		return nil
	})
	return removed, err
}

func staleIn(document *yaml.Node) []string {
	contexts := get(document, "contexts")
	if contexts == nil {
		return nil
	}
	var stale []string
	for _, element := range contexts.Content {
		owner := ownerOf(get(element, "context"))
		if owner == "" {
			continue
		}
		if info, err := datadir.Inspect(owner); err == nil && !info.Held {
			stale = append(stale, scalar(element, "name"))
		}
	}
	return stale
}
