package aggregator

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/taskctl-dev/taskctl/aggregator/combinedtask"
	"github.com/taskctl-dev/taskctl/aggregator/details"
	"github.com/taskctl-dev/taskctl/aggregator/stored"
	"github.com/taskctl-dev/taskctl/aggregator/view"
)

// parts are what the resources are made of.
type parts struct {
	scheme     *runtime.Scheme
	clients    *clients
	authorizer authorizer.Authorizer
	combined   *view.View
	searcher   *details.Searcher
	storage    generic.RESTOptionsGetter // nil: stored kinds are not served
}

// storedKinds are the kinds that the aggregated API stores itself.
func storedKinds() []stored.Kind {
	return []stored.Kind{stored.ClusterTask(), stored.CustomTask()}
}

// resources is the table of what is served: one entry for each resource and
// subresource. The relations of what is stored have to be run.
func resources(p parts) (map[string]rest.Storage, []*stored.Served, error) {
	served := map[string]rest.Storage{
		"combinedtasks": combinedtask.NewREST(p.combined, p.clients, p.authorizer),
		"details":       details.NewREST(p.searcher, p.clients, p.authorizer, clock.RealClock{}),
	}
	if p.storage == nil {
		return served, nil, nil
	}
	var kept []*stored.Served
	for _, kind := range storedKinds() {
		parts, err := stored.NewREST(kind, p.scheme, p.storage, p.authorizer)
		if err != nil {
			return nil, nil, err
		}
		served[kind.Resource] = parts.Resource
		served[kind.Resource+"/status"] = parts.Status
		served[kind.Resource+"/graph"] = parts.Graph
		kept = append(kept, parts)
	}
	return served, kept, nil
}
