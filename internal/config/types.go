package config

import (
	"fmt"
	"os"
	"strings"
)

// APIVersion and Kind are what a configuration file says of itself.
const (
	APIVersion = "taskctl.example.com/v1alpha1"
	Kind       = "Appliance"
)

// Config is a configuration file.
type Config struct {
	// File is its path, for error messages.
	File    string
	Cluster Cluster
	Storage Storage
}

// Cluster says where the API server comes from.
type Cluster struct {
	// Driver is auto, embedded or kind; "" is auto.
	Driver string
	// APIServerArgs are flags of kube-apiserver, without dashes.
	APIServerArgs map[string][]string
	// HasKind says that the kind section is not empty.
	HasKind bool
	// Line is where the section begins, 0 if there is none.
	Line int
	// KindLine is where the kind section begins.
	KindLine int
}

// Storage says which resource is stored where.
type Storage struct {
	// Default is the backend of what no route matches.
	Default  string    `json:"default"`
	Backends []Backend `json:"backends"`
	Routes   []Route   `json:"routes,omitempty"`
	Indexes  []Index   `json:"indexes,omitempty"`
	// Line is where the section begins, 0 if there is none.
	Line int `json:"-"`
}

// Backend is one database.
type Backend struct {
	Name string `json:"name"`
	// Endpoint is its URL. It may hold a password: never print it, print
	// Redacted.
	Endpoint     string       `json:"endpoint"`
	PasswordFrom PasswordFrom `json:"passwordFrom,omitzero"`
	TLS          TLS          `json:"tls,omitzero"`
	Pool         Pool         `json:"connectionPool,omitzero"`
	// Password is what ReadPasswords found; it is never kept.
	Password string `json:"-"`
	Line     int    `json:"-"`
}

// PasswordFrom says where a password is read, so that it stands in no file that
// is shared. At most one of its fields is set.
type PasswordFrom struct {
	// Env is the name of an environment variable.
	Env string `json:"env,omitempty"`
	// File is the path of a file.
	File string `json:"file,omitempty"`
}

// Read reads the password; without a source it is "". A line feed at the end of
// a file is not part of it.
func (p PasswordFrom) Read(getenv func(string) string) (string, error) {
	switch {
	case p.Env != "":
		password := getenv(p.Env)
		if password == "" {
			return "", fmt.Errorf("passwordFrom.env: the environment variable %s is not set", p.Env)
		}
		return password, nil
	case p.File != "":
		content, err := os.ReadFile(p.File)
		if err != nil {
			return "", fmt.Errorf("passwordFrom.file: %w", err)
		}
		return strings.TrimRight(string(content), "\r\n"), nil
	}
	return "", nil
}

// Route sends the keys that match every field given to a backend. Group,
// Resource, Namespace and Name are globs; "" matches all.
type Route struct {
	Backend   string `json:"backend"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Prefix is the beginning of an etcd key.
	Prefix string `json:"prefix,omitempty"`
	// Regexp matches somewhere in an etcd key; only topology files have it.
	Regexp string `json:"regexp,omitempty"`
	Line   int    `json:"-"`
}

// Index is kept by the SQL backends in the write's own transaction.
type Index struct {
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	// Labels says that every label is indexed.
	Labels bool `json:"labels,omitempty"`
	// Fields are paths of fields that are indexed.
	Fields []string `json:"fields,omitempty"`
	Line   int      `json:"-"`
}
