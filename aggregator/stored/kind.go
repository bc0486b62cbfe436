package stored

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// Kind is what the stored resources differ in.
type Kind struct {
	// Name of the kind, Resource its plural, Singular and ShortName what else
	// kubectl takes for it.
	Name, Resource, Singular, ShortName string
	Namespaced                          bool

	newObject, newList func() runtime.Object
}

// ClusterTask is the kind without a namespace.
func ClusterTask() Kind {
	return Kind{
		Name: "ClusterTask", Resource: "clustertasks", Singular: "clustertask", ShortName: "cltk",
		newObject: func() runtime.Object { return &searchv1.ClusterTask{} },
		newList:   func() runtime.Object { return &searchv1.ClusterTaskList{} },
	}
}

// CustomTask is the kind in a namespace.
func CustomTask() Kind {
	return Kind{
		Name: "CustomTask", Resource: "customtasks", Singular: "customtask", ShortName: "cutk", Namespaced: true,
		newObject: func() runtime.Object { return &searchv1.CustomTask{} },
		newList:   func() runtime.Object { return &searchv1.CustomTaskList{} },
	}
}

// parts gives access to what both kinds have. The pointers point into the
// object.
func parts(object runtime.Object) (meta *metav1.ObjectMeta, spec *searchv1.StoredTaskSpec, status *searchv1.StoredTaskStatus, ok bool) {
	switch task := object.(type) {
	case *searchv1.ClusterTask:
		return &task.ObjectMeta, &task.Spec, &task.Status, true
	case *searchv1.CustomTask:
		return &task.ObjectMeta, &task.Spec, &task.Status, true
	}
	return nil, nil, nil, false
}
