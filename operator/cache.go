package operator

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// newScheme holds the kinds that the operator reads or writes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(taskv1.AddToScheme, corev1.AddToScheme)
	return scheme, builder.AddToScheme(scheme)
}

// newMapper maps the kinds that the controller uses. They are known, so no
// discovery is needed, and an API group that is down delays nothing.
func newMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{taskv1.GroupVersion(), corev1.SchemeGroupVersion})
	mapper.Add(taskv1.Kind("Task"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return mapper, nil
}

// slim drops from an object on its way into the cache what the controller never
// reads: of a Task, that is most of its size.
func slim(object any) (any, error) {
	switch object := object.(type) {
	case *taskv1.Task:
		object.ManagedFields = nil
		delete(object.Annotations, corev1.LastAppliedConfigAnnotation)
		object.Spec.Details = ""
	case *corev1.Namespace:
		object.ManagedFields, object.Labels, object.Annotations = nil, nil, nil
	}
	return object, nil
}
