package config

import (
	"path"
	"strings"
)

func (s *Storage) read(r reader) error {
	s.Line = r.node.Line
	var defaultAt reader
	err := r.fields(map[string]func(reader) error{
		"default":  func(r reader) error { defaultAt = r; return r.text(&s.Default) },
		"backends": func(r reader) error { return r.list(s.readBackend) },
		"routes":   func(r reader) error { return r.list(s.readRoute) },
		"indexes":  func(r reader) error { return r.list(s.readIndex) },
	})
	if err != nil {
		return err
	}
	if len(s.Backends) == 0 {
		return r.errorf("backends are missing: there must be one at least")
	}
	if s.Default == "" {
		return r.errorf("default is missing: the name of the backend of what no route matches")
	}
	if !s.has(s.Default) {
		return defaultAt.errorf("there is no backend %q; there are: %s", s.Default, s.names())
	}
	return s.checkRoutes(r)
}

func (s *Storage) has(name string) bool {
	for _, backend := range s.Backends {
		if backend.Name == name {
			return true
		}
	}
	return false
}

// withEndpoint is the name of the backend with that endpoint, "" if none has it.
func (s *Storage) withEndpoint(endpoint string) string {
	for _, backend := range s.Backends {
		if backend.Endpoint == endpoint {
			return backend.Name
		}
	}
	return ""
}

func (s *Storage) names() string {
	var names []string
	for _, backend := range s.Backends {
		names = append(names, backend.Name)
	}
	return strings.Join(names, ", ")
}

func (s *Storage) readBackend(r reader) error {
	backend := Backend{Line: r.node.Line}
	err := r.fields(map[string]func(reader) error{
		"name": func(r reader) error { return r.text(&backend.Name) },
		"endpoint": func(r reader) error {
			if err := r.text(&backend.Endpoint); err != nil {
				return err
			}
			if err := CheckEndpoint(backend.Endpoint); err != nil {
				return r.errorf("%v", err)
			}
			return nil
		},
		"passwordFrom":   backend.readPasswordFrom,
		"tls":            backend.TLS.read,
		"connectionPool": backend.Pool.read,
	})
	other := s.withEndpoint(backend.Endpoint)
	switch {
	case err != nil:
		return err
	case backend.Name == "":
		return r.errorf("name is missing")
	case backend.Endpoint == "":
		return r.errorf("endpoint is missing")
	case s.has(backend.Name):
		return r.errorf("there are two backends with the name %q", backend.Name)
	case other != "":
		return r.errorf("endpoint: the backend %q has the same one: each needs its own", other)
	}
	s.Backends = append(s.Backends, backend)
	return nil
}

func (b *Backend) readPasswordFrom(r reader) error {
	err := r.fields(map[string]func(reader) error{
		"env":  func(r reader) error { return r.text(&b.PasswordFrom.Env) },
		"file": func(r reader) error { return r.text(&b.PasswordFrom.File) },
	})
	if err == nil && (b.PasswordFrom.Env == "") == (b.PasswordFrom.File == "") {
		return r.errorf("it needs either env or file")
	}
	return err
}

func (s *Storage) readRoute(r reader) error {
	route := Route{Line: r.node.Line}
	glob := func(into *string) func(reader) error {
		return func(r reader) error {
			if err := r.text(into); err != nil {
				return err
			}
			if _, err := path.Match(*into, ""); err != nil {
				return r.errorf("the glob %q is broken", *into)
			}
			return nil
		}
	}
	err := r.fields(map[string]func(reader) error{
		"backend":   func(r reader) error { return r.text(&route.Backend) },
		"group":     glob(&route.Group),
		"resource":  glob(&route.Resource),
		"namespace": glob(&route.Namespace),
		"name":      glob(&route.Name),
		"prefix":    func(r reader) error { return r.text(&route.Prefix) },
	})
	if err == nil && route.Backend == "" {
		return r.errorf("backend is missing")
	}
	s.Routes = append(s.Routes, route)
	return err
}

func (s *Storage) readIndex(r reader) error {
	index := Index{Line: r.node.Line}
	err := r.fields(map[string]func(reader) error{
		"group":    func(r reader) error { return r.text(&index.Group) },
		"resource": func(r reader) error { return r.text(&index.Resource) },
		"labels":   func(r reader) error { return r.boolean(&index.Labels) },
		"fields": func(r reader) error {
			return r.list(func(r reader) error {
				var field string
				err := r.text(&field)
				index.Fields = append(index.Fields, field)
				return err
			})
		},
	})
	switch {
	case err != nil:
		return err
	case index.Resource == "":
		return r.errorf("resource is missing")
	case !index.Labels && len(index.Fields) == 0:
		return r.errorf("it indexes nothing: it needs labels: true, or fields")
	}
	s.Indexes = append(s.Indexes, index)
	return nil
}
