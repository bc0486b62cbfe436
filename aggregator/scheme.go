package aggregator

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/stored"
)

// newScheme registers what clients may send and what they are sent.
func newScheme(kinds []Kind) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		searchv1.AddToScheme(scheme),
		searchv1.AddInternalToScheme(scheme),
		// The same fields can be selected as of a Task.
		scheme.AddFieldLabelConversionFunc(searchv1.GroupVersion().WithKind("CombinedTask"), taskFieldLabel),
		scheme.AddFieldLabelConversionFunc(searchv1.GroupVersion().WithKind("TaskMatch"), taskFieldLabel),
	)
	for _, kind := range storedKinds() {
		err = errors.Join(err, scheme.AddFieldLabelConversionFunc(searchv1.GroupVersion().WithKind(kind.Name), kind.FieldLabel))
	}
	if err != nil {
		return nil, fmt.Errorf("register the types: %w", err)
	}
	for _, kind := range kinds {
		scheme.AddKnownTypes(searchv1.GroupVersion(), kind.Types...)
		scheme.AddKnownTypes(schema.GroupVersion{Group: searchv1.GroupName, Version: runtime.APIVersionInternal}, kind.Types...)
	}
	scheme.AddTypeDefaultingFunc(&searchv1.ClusterTask{}, func(object any) {
		stored.Default(&object.(*searchv1.ClusterTask).Spec)
	})
	scheme.AddTypeDefaultingFunc(&searchv1.CustomTask{}, func(object any) {
		stored.Default(&object.(*searchv1.CustomTask).Spec)
	})
	// The generic API server decodes options and encodes errors in the
	// version v1 without a group.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, nil
}

// newDefinitionScheme registers what OpenAPI is to describe: the version that
// clients see, not the one in memory.
func newDefinitionScheme(kinds []Kind) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := searchv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the types: %w", err)
	}
	for _, kind := range kinds {
		scheme.AddKnownTypes(searchv1.GroupVersion(), kind.Types...)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme, nil
}

func taskFieldLabel(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "metadata.namespace", "spec.priority", "spec.taskState":
		return label, value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %q; supported are metadata.name, metadata.namespace, spec.priority and spec.taskState", label)
}
