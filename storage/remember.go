package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/taskctl-dev/taskctl/storage/routing"
)

// routesFile is the file in the data folder that remembers what was stored
// where, so that a start with other routes notices keys that it would not find.
const routesFile = "routes.json"

// remembered is what the file says.
type remembered struct {
	// Moving is what a move that has not ended brings keys to; nil normally.
	Moving *placement `json:"moving,omitempty"`
	// Placements are in order; the last is the present one.
	Placements []placement `json:"placements"`
}

// placement is a topology and the revision from which on it holds.
type placement struct {
	Revision int64           `json:"revision"`
	Backends []placedBackend `json:"backends"`
	Rules    []routing.Rule  `json:"rules,omitempty"`
}

// placedBackend is a backend without its password.
type placedBackend struct {
	Name string `json:"name"`
	Spec string `json:"spec"`
}

func placementOf(topology Topology, revision int64) placement {
	p := placement{Revision: revision, Rules: topology.Rules}
	for _, b := range topology.Backends {
		p.Backends = append(p.Backends, placedBackend{Name: b.Name, Spec: withoutPassword(b.Spec)})
	}
	return p
}

// same says that both keep every key in the same place.
func (p placement) same(other placement) bool {
	return slices.Equal(p.Backends, other.Backends) && slices.Equal(p.Rules, other.Rules)
}

// present is the last placement, nil if there is none.
func (r *remembered) present() *placement {
	if len(r.Placements) == 0 {
		return nil
	}
	return &r.Placements[len(r.Placements)-1]
}

// gone are the backends of the last placement that the topology has no more.
func (r *remembered) gone(now placement) []placedBackend {
	last := r.present()
	if last == nil {
		return nil
	}
	var gone []placedBackend
	for _, b := range last.Backends {
		if !slices.ContainsFunc(now.Backends, func(other placedBackend) bool { return other.Spec == b.Spec }) {
			gone = append(gone, b)
		}
	}
	return gone
}

// recall reads the file; one that is missing remembers nothing.
func recall(dataDir string) (*remembered, error) {
	r := &remembered{}
	content, err := os.ReadFile(filepath.Join(dataDir, routesFile))
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(content, r)
	}
	if err != nil {
		return nil, fmt.Errorf("find out what was stored where (%s): %w", filepath.Join(dataDir, routesFile), err)
	}
	return r, nil
}

// save writes the file durably, as a whole.
func (r *remembered) save(dataDir string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = replaceFile(filepath.Join(dataDir, routesFile), append(content, '\n'))
	}
	if err != nil {
		return fmt.Errorf("remember what is stored where: %w", err)
	}
	return nil
}

// add makes a placement the present one.
func (r *remembered) add(p placement) {
	if last := r.present(); last == nil || !last.same(p) {
		r.Placements = append(r.Placements, p)
	}
}

// replaceFile writes a new file, syncs it and puts it in the place of an old one.
func replaceFile(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// withoutPassword is a SPEC as it may be kept; it still says which database it
// is. The embedded etcd and the default SQLite file have one spelling each.
func withoutPassword(spec string) string {
	kind, rest, _ := strings.Cut(spec, ":")
	switch kind {
	case "etcd":
		return kind
	case "sqlite":
		if rest == "" {
			return "sqlite://store.db"
		}
		return spec
	case "mysql":
		at := strings.LastIndex(rest, "@")
		user, _, _ := strings.Cut(rest[:max(at, 0)], ":")
		if at < 0 {
			return spec
		}
		return kind + ":" + user + rest[at:]
	}
	parsed, err := url.Parse(spec)
	if err != nil {
		return kind + "://…"
	}
	if parsed.User != nil {
		parsed.User = url.User(parsed.User.Username())
	}
	query := parsed.Query()
	if query.Has("password") {
		query.Del("password")
		parsed.RawQuery = query.Encode()
	}
	return parsed.String()
}
