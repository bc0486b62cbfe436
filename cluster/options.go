package cluster

import (
	"io"

	"github.com/taskctl-dev/taskctl/storage/endpoint"
)

// Options are optional all.
type Options struct {
	// CRDDirs are folders whose YAML files hold CustomResourceDefinitions.
	// Those are installed, and served, when Start returns; other objects in
	// the files are left alone. Subfolders are not read.
	CRDDirs []string
	// Dir keeps certificates and data for a later start with the same Dir.
	// Default: a temporary folder, which Stop removes.
	Dir string
	// Storage is an etcd v3 endpoint to use in place of the embedded etcd. It
	// must be running, and is left running.
	Storage endpoint.Endpoint
	// APIServerArgs are flags of kube-apiserver, without dashes.
	APIServerArgs map[string][]string
	// Log takes the logs of all parts, several goroutines writing whole lines
	// in turn, and klog's of the whole process while the control plane runs.
	// Default: they are thrown away.
	Log io.Writer
}
