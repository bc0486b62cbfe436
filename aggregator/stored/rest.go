package stored

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
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
	kind Kind
}

var (
	_ rest.StandardStorage    = (*REST)(nil)
	_ rest.ShortNamesProvider = (*REST)(nil)
)

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{r.kind.ShortName} }

// NewREST makes the resource and its subresource status. Where they are stored
// is up to the getter. The scheme must know the kind.
func NewREST(kind Kind, scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (*REST, *StatusREST, error) {
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
		return nil, nil, fmt.Errorf("store %s: %w", kind.Resource, err)
	}
	status := *store
	of := statusStrategy{resource}
	status.UpdateStrategy, status.ResetFieldsStrategy = of, of
	return &REST{Store: store, kind: kind}, &StatusREST{store: &status}, nil
}
