package aggregator_test

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/taskctl-dev/taskctl/aggregator"
	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// Note is a namespaced kind with storage of its own.
type Note struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Text              string `json:"text"`
}

type NoteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Note `json:"items"`
}

// controller-gen and openapi-gen write these for larger types.
func (n *Note) DeepCopyObject() runtime.Object {
	return &Note{n.TypeMeta, *n.ObjectMeta.DeepCopy(), n.Text}
}

func (l *NoteList) DeepCopyObject() runtime.Object {
	list := &NoteList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		list.Items = append(list.Items, *l.Items[i].DeepCopyObject().(*Note))
	}
	return list
}

func (Note) OpenAPIModelName() string     { return "com.example.note.v1.Note" }
func (NoteList) OpenAPIModelName() string { return "com.example.note.v1.NoteList" }

func noteDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return map[string]common.OpenAPIDefinition{
		Note{}.OpenAPIModelName(): define(ref, metav1.ObjectMeta{}.OpenAPIModelName(),
			map[string]spec.Schema{"text": *spec.StringProperty().WithDescription("text is what is to be kept in mind.")}),
		NoteList{}.OpenAPIModelName(): define(ref, metav1.ListMeta{}.OpenAPIModelName(),
			map[string]spec.Schema{"items": *spec.ArrayProperty(refTo(ref, Note{}.OpenAPIModelName()))}),
	}
}

// noteStrategy says what happens to a Note on its way into the store.
type noteStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (noteStrategy) NamespaceScoped() bool                                            { return true }
func (noteStrategy) AllowCreateOnUpdate(context.Context) bool                         { return false }
func (noteStrategy) AllowUnconditionalUpdate(context.Context) bool                    { return true }
func (noteStrategy) Canonicalize(runtime.Object)                                      {}
func (noteStrategy) PrepareForCreate(context.Context, runtime.Object)                 {}
func (noteStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (noteStrategy) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (noteStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (noteStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	if object.(*Note).Text == "" {
		return field.ErrorList{field.Required(field.NewPath("text"), "")}
	}
	return nil
}

func (s noteStrategy) ValidateUpdate(ctx context.Context, object, _ runtime.Object) field.ErrorList {
	return s.Validate(ctx, object)
}

// notes is what the server is told of the kind.
func notes() aggregator.Kind {
	return aggregator.Kind{Types: []runtime.Object{&Note{}, &NoteList{}}, Definitions: noteDefinitions, New: newNotes}
}

func newNotes(p aggregator.Parts) (*aggregator.Served, error) {
	strategy := noteStrategy{p.Scheme, names.SimpleNameGenerator}
	store := &genericregistry.Store{
		NewFunc: func() runtime.Object { return &Note{} }, NewListFunc: func() runtime.Object { return &NoteList{} },
		DefaultQualifiedResource: searchv1.Resource("notes"), SingularQualifiedResource: searchv1.Resource("note"),
		CreateStrategy: strategy, UpdateStrategy: strategy, DeleteStrategy: strategy,
		TableConvertor: rest.NewDefaultTableConvertor(searchv1.Resource("notes")),
	}
	err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: p.Storage})
	return &aggregator.Served{Resources: map[string]rest.Storage{"notes": store}}, err
}
