package storage

import (
	"errors"
	"fmt"

	"github.com/taskctl-dev/taskctl/storage/routing"
)

// Topology says which databases a store lives in, and what is stored where.
type Topology struct {
	// Backends are the databases, the default one first: it holds what no
	// rule matches.
	Backends []Backend
	// Rules say which keys are held by which backend; the first that matches
	// wins.
	Rules []routing.Rule
}

// Backend is one database of a store.
type Backend struct {
	// Name is what rules, errors, metrics and logs call it.
	Name string
	// Spec names the database, as Config.Spec does.
	Spec string
	// Password is used instead of the one in a URL where it is not empty.
	Password string
	// TLS is used instead of what the URL says where it is not zero.
	TLS TLS
	// Pool bounds the connections to a SQL server; zero leaves it to us.
	Pool Pool
}

// Router is the topology's rules, checked.
func (t Topology) Router() (*routing.Router, error) {
	if len(t.Backends) == 0 {
		return nil, errors.New("the store has no backend")
	}
	var names []string
	seen := map[string]bool{}
	for _, b := range t.Backends {
		if b.Name == "" || seen[b.Name] {
			return nil, fmt.Errorf("the name %q of a storage backend is empty or used twice", b.Name)
		}
		seen[b.Name] = true
		names = append(names, b.Name)
	}
	return routing.New(names, t.Rules)
}

// topology is the configuration's, or the one of its only database, which is
// named by its kind.
func (c Config) topology() (Topology, error) {
	if len(c.Backends) > 0 {
		return c.Topology, nil
	}
	kind, err := kindOf(c.Spec)
	if err != nil {
		return Topology{}, err
	}
	return Topology{Backends: []Backend{{Name: kind, Spec: c.Spec, Password: c.Password}}}, nil
}
