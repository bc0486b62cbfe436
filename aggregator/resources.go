package aggregator

import (
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/taskctl-dev/taskctl/aggregator/combinedtask"
	"github.com/taskctl-dev/taskctl/aggregator/view"
)

// parts are what the resources are made of.
type parts struct {
	clients    *clients
	authorizer authorizer.Authorizer
	combined   *view.View
}

// resources is the table of what is served: one line for each resource and
// subresource.
func resources(p parts) map[string]rest.Storage {
	return map[string]rest.Storage{
		"combinedtasks": combinedtask.NewREST(p.combined, p.clients, p.authorizer),
	}
}
