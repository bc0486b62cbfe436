package config

import (
	"fmt"
	"slices"
	"strings"
)

// FromSpec is the storage of one database that a --storage SPEC names; "" is no
// storage.
func FromSpec(spec string) Storage {
	if spec == "" {
		return Storage{}
	}
	name, _, _ := strings.Cut(spec, ":")
	return Storage{Default: name, Backends: []Backend{{Name: name, Endpoint: spec}}}
}

// IsZero says that the storage names no database.
func (s Storage) IsZero() bool { return len(s.Backends) == 0 }

// Ordered are the backends, the default one first.
func (s Storage) Ordered() []Backend {
	ordered := slices.Clone(s.Backends)
	slices.SortStableFunc(ordered, func(a, b Backend) int {
		switch {
		case a.Name == s.Default && b.Name != s.Default:
			return -1
		case b.Name == s.Default && a.Name != s.Default:
			return 1
		}
		return 0
	})
	return ordered
}

// ReadPasswords reads the passwords of all backends.
func (s Storage) ReadPasswords(getenv func(string) string) error {
	for i := range s.Backends {
		backend := &s.Backends[i]
		password, err := backend.PasswordFrom.Read(getenv)
		if err != nil {
			return &BackendError{Index: i, Line: backend.Line, Err: err}
		}
		backend.Password = password
	}
	return nil
}

// BackendError is what is wrong with one backend.
type BackendError struct {
	Index int
	Line  int // 0 outside of a file
	Err   error
}

func (e *BackendError) Error() string {
	return fmt.Sprintf("storage.backends[%d]: %v", e.Index, e.Err)
}

func (e *BackendError) Unwrap() error { return e.Err }

// Redacted is the storage without passwords, as it may be kept.
func (s Storage) Redacted() Storage {
	s.Backends = slices.Clone(s.Backends)
	for i := range s.Backends {
		s.Backends[i].Endpoint = redactedSpec(s.Backends[i].Endpoint)
		s.Backends[i].Password = ""
	}
	return s
}

// HidesPassword says that a backend of a storage that Redacted returned had a
// password that stood in its address.
func (s Storage) HidesPassword() bool {
	return slices.ContainsFunc(s.Backends, func(b Backend) bool { return HidesPassword(b.Endpoint) })
}

// String is the storage in one line, without passwords. Two storages with the
// same text keep everything in the same places. For one database it is its SPEC.
func (s Storage) String() string {
	if len(s.Backends) == 1 && len(s.Routes) == 0 {
		return redactedSpec(s.Backends[0].Endpoint)
	}
	var parts []string
	for _, backend := range s.Ordered() {
		parts = append(parts, backend.Name+"="+redactedSpec(backend.Endpoint))
	}
	text := strings.Join(parts, " ")
	for _, route := range s.Routes {
		text += "; " + route.String()
	}
	return text
}

// IsSpec says that a --storage SPEC says all about the backend.
func (b Backend) IsSpec() bool {
	return b.PasswordFrom == PasswordFrom{} && b.TLS.IsZero() && b.Pool == Pool{}
}

// String is the route in one line.
func (r Route) String() string { return r.what() + " in " + r.Backend }

// what is what the route matches.
func (r Route) what() string {
	var fields []string
	for _, field := range [...][2]string{
		{"group", r.Group}, {"resource", r.Resource}, {"namespace", r.Namespace}, {"name", r.Name}, {"prefix", r.Prefix}, {"regexp", r.Regexp},
	} {
		if field[1] != "" {
			fields = append(fields, field[0]+"="+field[1])
		}
	}
	if len(fields) == 0 {
		return "everything"
	}
	return strings.Join(fields, " ")
}

// redactedSpec is a SPEC or an endpoint without its password; the embedded etcd
// has one spelling.
func redactedSpec(spec string) string {
	switch {
	case spec == "etcd://":
		return "etcd"
	case Scheme(spec) == "":
		return spec // etcd, sqlite
	}
	return Redacted(spec)
}
