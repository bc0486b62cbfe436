package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the Task.
const GroupName = "example.example.com"

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1"}
}

// Kind qualifies a kind with this package's group, version included.
func Kind(kind string) schema.GroupVersionKind {
	return GroupVersion().WithKind(kind)
}

// Resource qualifies a plural resource name with this package's group, version
// included.
func Resource(resource string) schema.GroupVersionResource {
	return GroupVersion().WithResource(resource)
}

// AddToScheme registers the types of this package. It has the shape of a
// runtime.SchemeBuilder's function and never fails.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &Task{}, &TaskList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
