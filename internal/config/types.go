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
	Default  string
	Backends []Backend
	Routes   []Route
	Indexes  []Index
	// Line is where the section begins, 0 if there is none.
	Line int
}

// Backend is one database.
type Backend struct {
	Name string
	// Endpoint is its URL. It may hold a password: never print it, print
	// Redacted.
	Endpoint     string
	PasswordFrom PasswordFrom
	Line         int
}

// PasswordFrom says where a password is read, so that it stands in no file that
// is shared. At most one of its fields is set.
type PasswordFrom struct {
	// Env is the name of an environment variable.
	Env string
	// File is the path of a file.
	File string
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
	Backend   string
	Group     string
	Resource  string
	Namespace string
	Name      string
	// Prefix is the beginning of an etcd key.
	Prefix string
	Line   int
}

// Index is kept by the SQL backends in the write's own transaction.
type Index struct {
	Group    string
	Resource string
	// Labels says that every label is indexed.
	Labels bool
	// Fields are paths of fields that are indexed.
	Fields []string
	Line   int
}
