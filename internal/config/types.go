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
	// Kind is what the node of the kind driver has beside the usual.
	Kind KindSection
	// Line is where the section begins, 0 if there is none.
	Line int
}

// KindSection is the section cluster.kind. Its fields are those of the same names of
// kind's own configuration (https://kind.sigs.k8s.io/docs/user/configuration/).
type KindSection struct {
	ExtraMounts       []Mount       `json:"extraMounts,omitempty"`
	ExtraPortMappings []PortMapping `json:"extraPortMappings,omitempty"`
	// Labels are put on the Node.
	Labels map[string]string `json:"labels,omitempty"`
	// KubeadmConfigPatches are YAML documents that say their kind.
	KubeadmConfigPatches []string `json:"kubeadmConfigPatches,omitempty"`
	// ContainerdConfigPatches are pieces of TOML.
	ContainerdConfigPatches []string `json:"containerdConfigPatches,omitempty"`
	// Line is where the section begins, 0 if there is none.
	Line int `json:"-"`
}

// IsEmpty says that the section asks for nothing.
func (k KindSection) IsEmpty() bool {
	return len(k.ExtraMounts)+len(k.ExtraPortMappings)+len(k.Labels)+len(k.KubeadmConfigPatches)+len(k.ContainerdConfigPatches) == 0
}

// Mount is a folder or file of this machine that the node sees.
type Mount struct {
	// HostPath is absolute.
	HostPath      string `json:"hostPath"`
	ContainerPath string `json:"containerPath"`
	ReadOnly      bool   `json:"readOnly,omitempty"`
}

// PortMapping is a port of the node that answers on this machine.
type PortMapping struct {
	ContainerPort int `json:"containerPort"`
	// HostPort 0 is a free one.
	HostPort int `json:"hostPort,omitempty"`
	// ListenAddress "" is all addresses.
	ListenAddress string `json:"listenAddress,omitempty"`
	// Protocol is TCP, UDP or SCTP; "" is TCP.
	Protocol string `json:"protocol,omitempty"`
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
