package stored

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/clock"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// REST serves a stored kind: every verb.
type REST struct {
	*genericregistry.Store
	kind      Kind
	relations *Relations
}

var (
	_ rest.StandardStorage    = (*REST)(nil)
	_ rest.ShortNamesProvider = (*REST)(nil)
)

// Name of the resource, in the plural.
func (r *REST) Name() string { return r.kind.Resource }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{r.kind.ShortName} }

// Served is everything that a stored kind consists of.
type Served struct {
	Resource *REST
	Status   *StatusREST
	Graph    *GraphREST
	// Relations have to be run.
	Relations *Relations
}

// NewREST makes the resource and its subresources. Where they are stored is up
// to the getter. The scheme must know the kind.
func NewREST(kind Kind, scheme *runtime.Scheme, getter generic.RESTOptionsGetter, authorizer authorizer.Authorizer) (*Served, error) {
	resource := strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, kind: kind, clock: clock.RealClock{}}
	store := &genericregistry.Store{
		NewFunc:                   kind.newObject,
		NewListFunc:               kind.newList,
		PredicateFunc:             kind.predicate,
		DefaultQualifiedResource:  searchv1.Resource(kind.Resource),
		SingularQualifiedResource: searchv1.Resource(kind.Singular),
		CreateStrategy:            resource,
		UpdateStrategy:            resource,
		DeleteStrategy:            resource,
		ResetFieldsStrategy:       resource,
		TableConvertor:            table{},
	}
	options := &generic.StoreOptions{RESTOptions: getter, AttrFunc: kind.attributes}
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, fmt.Errorf("store %s: %w", kind.Resource, err)
	}
	statusStore := *store
	of := statusStrategy{resource}
	statusStore.UpdateStrategy, statusStore.ResetFieldsStrategy = of, of
	status := &StatusREST{store: &statusStore}
	relations := newRelations(kind, store, status)
	return &Served{
		Resource:  &REST{Store: store, kind: kind, relations: relations},
		Status:    status,
		Graph:     &GraphREST{kind: kind, store: store, authorizer: authorizer},
		Relations: relations,
	}, nil
}
