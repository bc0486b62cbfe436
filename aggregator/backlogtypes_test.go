package aggregator_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/taskctl-dev/taskctl/aggregator"
	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// BacklogList is a list of Backlogs.
type BacklogList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Backlog `json:"items"`
}

func (b *Backlog) DeepCopyObject() runtime.Object {
	return &Backlog{b.TypeMeta, *b.ObjectMeta.DeepCopy(), b.Pending, b.Limit}
}

func (l *BacklogList) DeepCopyObject() runtime.Object {
	return &BacklogList{l.TypeMeta, *l.ListMeta.DeepCopy(), append([]Backlog(nil), l.Items...)}
}

func (Backlog) OpenAPIModelName() string     { return "com.example.backlog.v1.Backlog" }
func (BacklogList) OpenAPIModelName() string { return "com.example.backlog.v1.BacklogList" }

func backlogKind() aggregator.Kind {
	return aggregator.Kind{Types: []runtime.Object{&Backlog{}, &BacklogList{}}, Definitions: backlogDefinitions, New: newBacklogs}
}

func backlogDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return map[string]common.OpenAPIDefinition{
		Backlog{}.OpenAPIModelName(): define(ref, metav1.ObjectMeta{}.OpenAPIModelName(),
			map[string]spec.Schema{"pending": *spec.Int64Property(), "limit": *spec.StringProperty()}),
		BacklogList{}.OpenAPIModelName(): define(ref, metav1.ListMeta{}.OpenAPIModelName(),
			map[string]spec.Schema{"items": *spec.ArrayProperty(refTo(ref, Backlog{}.OpenAPIModelName()))}),
	}
}

// mayReadBacklogs lets those read who may list both halves.
func mayReadBacklogs(a authorizer.Authorizer) func(context.Context, string, string, string) error {
	return func(ctx context.Context, verb, _, name string) error {
		user, _ := genericapirequest.UserFrom(ctx)
		for _, half := range []authorizer.AttributesRecord{
			{User: user, Verb: "list", APIGroup: "example.example.com", APIVersion: "v1", Resource: "tasks", ResourceRequest: true},
			{User: user, Verb: "list", APIVersion: "v1", Resource: "namespaces", ResourceRequest: true},
		} {
			if decision, reason, err := a.Authorize(ctx, half); decision != authorizer.DecisionAllow {
				return apierrors.NewForbidden(searchv1.Resource("backlogs"), name, fmt.Errorf("to %s it, one must be allowed to list all %s: %s %w", verb, half.Resource, reason, err))
			}
		}
		return nil
	}
}

// define is an object with kind, apiVersion, metadata and these fields.
func define(ref common.ReferenceCallback, meta string, properties map[string]spec.Schema) common.OpenAPIDefinition {
	properties["kind"], properties["apiVersion"], properties["metadata"] = *spec.StringProperty(), *spec.StringProperty(), *refTo(ref, meta)
	return common.OpenAPIDefinition{
		Schema:       spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}},
		Dependencies: []string{meta},
	}
}

func refTo(ref common.ReferenceCallback, model string) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Default: map[string]any{}, Ref: ref(model)}}
}
