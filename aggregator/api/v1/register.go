package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the aggregated API group.
const GroupName = "search.task.example.example.com"

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1"}
}

// Resource qualifies a plural resource name with this package's group.
func Resource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: GroupName, Resource: resource}
}

// AddToScheme registers the types of this package under the version v1. It has
// the shape of a runtime.SchemeBuilder's function and never fails.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), knownTypes()...)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}

// AddInternalToScheme registers the same types as the version that the API
// server works with in memory. Only the server needs it.
func AddInternalToScheme(scheme *runtime.Scheme) error {
	internal := schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, knownTypes()...)
	return nil
}

func knownTypes() []runtime.Object {
	return []runtime.Object{
		&CombinedTask{}, &CombinedTaskList{},
		&ClusterTask{}, &ClusterTaskList{},
		&CustomTask{}, &CustomTaskList{},
		&TaskGraph{},
		&TaskMatch{}, &TaskMatchList{},
	}
}
