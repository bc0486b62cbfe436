package aggregator

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/taskctl-dev/taskctl/aggregator/combinedtask"
	"github.com/taskctl-dev/taskctl/aggregator/stored"
	"github.com/taskctl-dev/taskctl/aggregator/view"
)

// parts are what the resources are made of.
type parts struct {
	scheme     *runtime.Scheme
	clients    *clients
	authorizer authorizer.Authorizer
	combined   *view.View
	storage    generic.RESTOptionsGetter // nil: stored kinds are not served
}

// storedKinds are the kinds that the aggregated API stores itself.
func storedKinds() []stored.Kind {
	return []stored.Kind{stored.ClusterTask(), stored.CustomTask()}
}

// resources is the table of what is served: one entry for each resource and
// subresource.
func resources(p parts) (map[string]rest.Storage, error) {
	served := map[string]rest.Storage{
		"combinedtasks": combinedtask.NewREST(p.combined, p.clients, p.authorizer),
	}
	if p.storage == nil {
		return served, nil
	}
	for _, kind := range storedKinds() {
		resource, status, err := stored.NewREST(kind, p.scheme, p.storage)
		if err != nil {
			return nil, err
		}
		served[kind.Resource] = resource
		served[kind.Resource+"/status"] = status
	}
	return served, nil
}
