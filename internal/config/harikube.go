package config

import (
	"fmt"
	"os"
	"strings"
)

// ReadTopology reads HariKube's topology.yaml
// (https://harikube.info/docs/installation) with the meaning that it has there:
// each backend has one matcher, the first that matches a key wins, and the
// fallback, whose Name is chosen here, holds the rest. notices are settings of
// the file that have no effect on this store, one line each, with the reason.
func ReadTopology(file string, fallback Backend) (storage Storage, notices []string, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Storage{}, nil, fmt.Errorf("reading the topology file: %w", err)
	}
	return ParseTopology(file, content, fallback)
}

// ParseTopology is ReadTopology of a file's content; file is its name in
// errors.
func ParseTopology(file string, content []byte, fallback Backend) (Storage, []string, error) {
	root, err := parseDocument(file, content, "it begins with backends:")
	if err != nil {
		return Storage{}, nil, err
	}
	t := &topologyReader{storage: Storage{Line: root.node.Line}}
	var at reader
	err = root.fields(map[string]func(reader) error{
		"backends": func(r reader) error {
			at = r
			return r.list(t.readBackend)
		},
	})
	if err == nil && len(t.storage.Backends) == 0 {
		err = root.errorf("backends are missing: there must be one at least")
	}
	if err != nil {
		return Storage{}, nil, err
	}
	fallback.Name = freeName(&t.storage, "default")
	t.storage.Default = fallback.Name
	if err := t.checkFallback(at, fallback); err != nil {
		return Storage{}, nil, err
	}
	if err := t.checkHidden(at); err != nil {
		return Storage{}, nil, err
	}
	t.storage.Backends = append([]Backend{fallback}, t.storage.Backends...)
	return t.storage, t.notices, nil
}

// freeName is the name, with a number behind it if a backend has it already.
func freeName(s *Storage, name string) string {
	free := name
	for n := 2; s.has(free); n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}

// topologyReader collects what is read.
type topologyReader struct {
	storage Storage
	notices []string
	entry   []int // by route: the number of its backend in the file
}

func (t *topologyReader) notice(r reader, format string, args ...any) {
	t.notices = append(t.notices, r.errorf(format, args...).Error())
}

// readBackend reads one backend with its matcher.
func (t *topologyReader) readBackend(r reader) error {
	backend := Backend{Line: r.node.Line}
	var matchers []string
	var routes []Route
	matcher := func(name string, read func(reader) ([]Route, error)) func(reader) error {
		return func(r reader) error {
			matchers = append(matchers, name)
			var err error
			routes, err = read(r)
			return err
		}
	}
	var endpointAt, poolAt reader
	ignored := func(reason string) func(reader) error {
		return func(r reader) error {
			t.notice(r, "it has no effect here: %s", reason)
			return nil
		}
	}
	const compaction = "the store is compacted when its clients ask for it, as etcd is; kube-apiserver does so every 5 minutes"
	err := r.fields(map[string]func(reader) error{
		"name": func(r reader) error { return r.text(&backend.Name) },
		"endpoint": func(r reader) error {
			endpointAt = r
			return readTopologyEndpoint(r, &backend.Endpoint)
		},
		"passwordFrom":                 backend.readPasswordFrom,
		"backendTLS":                   backend.TLS.read,
		"connectionPool":               func(r reader) error { poolAt = r; return backend.Pool.read(r) },
		"regexp":                       matcher("regexp", readRegexpMatcher),
		"prefix":                       matcher("prefix", readPrefixMatcher),
		"namespace":                    matcher("namespace", readNamespaceMatcher),
		"customresource":               matcher("customresource", readCustomResourceMatcher),
		"compactInterval":              ignored(compaction),
		"compactIntervalJitter":        ignored(compaction),
		"compactTimeout":               ignored(compaction),
		"compactMinRetain":             ignored(compaction),
		"compactBatchSize":             ignored(compaction),
		"disableStorageLevelFiltering": ignored("filtering in the database never changes an answer"),
	})
	switch {
	case err != nil:
		return err
	case backend.Name == "":
		return r.errorf("name is missing")
	case backend.Endpoint == "":
		return r.errorf("endpoint is missing")
	case len(matchers) == 0:
		return r.errorf("a matcher is missing: regexp, prefix, namespace or customresource")
	case len(matchers) > 1:
		return r.errorf("there are several matchers (%s): a backend has one", strings.Join(matchers, ", "))
	case t.storage.has(backend.Name):
		return r.errorf("there are two backends with the name %q", backend.Name)
	}
	if other := t.storage.withEndpoint(backend.Endpoint); other != "" {
		return endpointAt.errorf("the backend %q has the same endpoint: each needs its own", other)
	}
	if scheme := Scheme(backend.Endpoint); poolAt.node != nil && scheme != "postgres" && scheme != "postgresql" && scheme != "mysql" {
		t.notice(poolAt, "it has no effect here: only PostgreSQL and MySQL have a pool of connections")
	}
	t.storage.Backends = append(t.storage.Backends, backend)
	for _, route := range routes {
		route.Backend, route.Line = backend.Name, backend.Line
		t.storage.Routes = append(t.storage.Routes, route)
		t.entry = append(t.entry, len(t.storage.Backends)-1)
	}
	return nil
}

// readTopologyEndpoint reads an endpoint. What kine's form of a SQLite address
// adds, the settings of its driver, this store sets itself.
func readTopologyEndpoint(r reader, into *string) error {
	if err := r.text(into); err != nil {
		return err
	}
	if file, ok := strings.CutPrefix(*into, "sqlite://"); ok {
		file, _, _ = strings.Cut(file, "?")
		*into = "sqlite://" + strings.TrimPrefix(file, "./")
	}
	if err := CheckEndpoint(*into); err != nil {
		return r.errorf("%v", err)
	}
	if Scheme(*into) == "etcd" {
		return r.errorf("an etcd is named by http://HOST:PORT or https://HOST:PORT here")
	}
	return nil
}

// checkFallback refuses a fallback that is one of the backends, too.
func (t *topologyReader) checkFallback(at reader, fallback Backend) error {
	other := t.storage.withEndpoint(fallback.Endpoint)
	for i, backend := range t.storage.Backends {
		if backend.Name == other && other != "" {
			return at.line(i, backend.Line).errorf("endpoint: what nothing matches is stored there already, by --storage: each needs its own")
		}
	}
	return nil
}

// checkHidden refuses a backend whose matcher can never match, because earlier
// ones take all that it would.
func (t *topologyReader) checkHidden(at reader) error {
	for i, route := range t.storage.Routes {
		for j, earlier := range t.storage.Routes[:i] {
			if t.entry[j] != t.entry[i] && earlier.covers(route) {
				return at.line(t.entry[i], route.Line).errorf("it can never match %s: the backend %q in line %d comes first and matches all of that",
					route.what(), earlier.Backend, earlier.Line)
			}
		}
	}
	return nil
}
