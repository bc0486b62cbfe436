package aggregator

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

func TestObjectsAreCreatedInNamespacesThatExist(t *testing.T) {
	terminating := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "terminating"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}}
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "there"}}, terminating)
	client.PrependReactor("get", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.GetAction).GetName() == "broken" {
			return true, nil, errors.New("no connection")
		}
		return false, nil, nil
	})
	check := newNamespaceCheck(client)
	if check.Handles(admission.Update) || check.Handles(admission.Delete) || !check.Handles(admission.Create) {
		t.Error("it is for creates only")
	}
	for _, test := range []struct {
		namespace, subresource string
		is                     func(error) bool
	}{
		{"there", "", func(err error) bool { return err == nil }},
		{"", "", func(err error) bool { return err == nil }},
		{"missing", "status", func(err error) bool { return err == nil }},
		{"missing", "", apierrors.IsNotFound},
		{"broken", "", apierrors.IsInternalError},
		{"terminating", "", func(err error) bool {
			return apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
		}},
	} {
		attributes := admission.NewAttributesRecord(&searchv1.CustomTask{}, nil, searchv1.GroupVersion().WithKind("CustomTask"), test.namespace, "x",
			searchv1.GroupVersion().WithResource("customtasks"), test.subresource, admission.Create, nil, false, nil)
		if err := check.Validate(t.Context(), attributes, nil); !test.is(err) {
			t.Errorf("namespace %q, subresource %q: got %v", test.namespace, test.subresource, err)
		}
	}
}
