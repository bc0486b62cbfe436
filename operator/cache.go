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

// newMapper maps the two kinds that the controller uses. They are known, so no
// discovery is needed, and an API group that is down delays nothing.
func newMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{taskv1.GroupVersion(), corev1.SchemeGroupVersion})
	mapper.Add(taskv1.Kind("Task"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	return mapper, nil
}

// slim drops from a Task on its way into the cache what the controller never
// reads and what makes up most of its size.
func slim(object any) (any, error) {
	task, ok := object.(*taskv1.Task)
	if !ok {
		return object, nil // a tombstone
	}
	task.ManagedFields = nil
	delete(task.Annotations, corev1.LastAppliedConfigAnnotation)
	task.Spec.Details = ""
	return task, nil
}
