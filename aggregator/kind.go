package aggregator

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/taskctl-dev/taskctl/aggregator/view"
)

// Kind is a kind of one's own, served in the same group and version beside
// those of this package; see docs/aggregator.md.
type Kind struct {
	// Types are the object and its list. Required.
	Types []runtime.Object
	// Definitions describe the types, and those that only they refer to, for
	// OpenAPI, as openapi-gen generates them. Required.
	Definitions common.GetOpenAPIDefinitions
	// New makes what is served. It is called once for each Run. Required.
	New func(Parts) (*Served, error)
}

// Served is a Kind in one Run.
type Served struct {
	// Resources are the resource under its plural name, and its subresources
	// under plural/subresource. Required.
	Resources map[string]rest.Storage
	// Run is what feeds the resource; it returns when ctx ends. Optional.
	Run func(ctx context.Context)
	// Ready returns an error while requests can't be answered yet: the port is
	// opened after that. Optional.
	Ready func() error
}

// Parts are what a Kind may be made of.
type Parts struct {
	// Scheme knows the types.
	Scheme *runtime.Scheme
	// Storage stores objects under /registry/GROUP/RESOURCE/…; nil where the
	// aggregator was given no store.
	Storage generic.RESTOptionsGetter
	// Config reaches the API server with the aggregator's identity, whose role
	// must allow what the kind reads.
	Config *clientrest.Config
	// Authorizer knows what users may do, and caches it for a few seconds.
	Authorizer authorizer.Authorizer
	// Numbers are resource versions for a View.
	Numbers view.Numbers
}

func (k Kind) check() error {
	if len(k.Types) == 0 || k.Definitions == nil || k.New == nil {
		return errors.New("a Kind without Types, Definitions or New")
	}
	return nil
}

// describe joins the OpenAPI definitions of all kinds.
func describe(of common.GetOpenAPIDefinitions, kinds []Kind) common.GetOpenAPIDefinitions {
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := of(ref)
		for _, kind := range kinds {
			maps.Copy(all, kind.Definitions(ref))
		}
		return all
	}
}

// addKinds makes kinds and adds their resources to those that are served.
func addKinds(resources map[string]rest.Storage, kinds []Kind, p Parts) ([]*Served, error) {
	var made []*Served
	for _, kind := range kinds {
		served, err := kind.New(p)
		if err != nil {
			return nil, err
		}
		for path, storage := range served.Resources {
			if resources[path] != nil {
				return nil, fmt.Errorf("the resource %s exists twice", path)
			}
			resources[path] = storage
		}
		made = append(made, served)
	}
	return made, nil
}
