package view

import (
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
)

// selection is what a request asks for: a namespace or all, and selectors.
// namespace and name narrow the walk, the selectors decide.
type selection struct {
	namespace string // "" is all
	name      string // "" is all; only with a namespace
	labels    labels.Selector
	fields    fields.Selector
}

// newSelection reads the selectors of a request in a namespace ("" for all
// namespaces or a cluster-scoped kind).
func newSelection(namespace string, clusterScoped bool, options *metainternalversion.ListOptions) selection {
	s := selection{namespace: namespace, labels: labels.Everything(), fields: fields.Everything()}
	if options.LabelSelector != nil {
		s.labels = options.LabelSelector
	}
	if options.FieldSelector != nil {
		s.fields = options.FieldSelector
	}
	if s.namespace == "" && !clusterScoped {
		s.namespace, _ = s.fields.RequiresExactMatch(fieldNamespace)
	}
	if s.namespace != "" || clusterScoped {
		s.name, _ = s.fields.RequiresExactMatch(fieldName)
	}
	return s
}

// everything tells whether all objects of the namespace are selected.
func (s selection) everything() bool {
	return s.labels.Empty() && s.fields.Empty()
}

func (s selection) matches(item Item) bool {
	if s.namespace != "" && item.Key().Namespace != s.namespace {
		return false
	}
	return s.labels.Matches(item.Labels()) && s.fields.Matches(item.Fields())
}
