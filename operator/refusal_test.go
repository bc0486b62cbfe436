package operator_test

import (
	"errors"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// refuseEvents makes an admission policy that refuses all Events in a
// namespace, and waits until it is in force. The function that it returns
// waits until it is in force no more.
func (e *environment) refuseEvents(t *testing.T, namespace string) (allow func()) {
	t.Helper()
	c, err := kubernetes.NewForConfig(e.admin)
	if err != nil {
		t.Fatal(err)
	}
	policies, bindings := c.AdmissionregistrationV1().ValidatingAdmissionPolicies(), c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	meta := metav1.ObjectMeta{Name: "no-events-in-" + namespace}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"events"}},
					},
				}},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no Events here", Reason: ptr.To(metav1.StatusReasonForbidden)}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        meta.Name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	_, policyErr := policies.Create(t.Context(), policy, metav1.CreateOptions{})
	_, bindingErr := bindings.Create(t.Context(), binding, metav1.CreateOptions{})
	if err := errors.Join(policyErr, bindingErr); err != nil {
		t.Fatal(err)
	}
	probe := func() error {
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"},
			InvolvedObject: corev1.ObjectReference{Namespace: namespace},
		}
		_, err := c.CoreV1().Events(namespace).Create(t.Context(), event, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	eventually(t, "Events are refused", func() error {
		if err := probe(); !apierrors.IsForbidden(err) {
			return fmt.Errorf("creating one: %v", err)
		}
		return nil
	})
	return func() {
		t.Helper()
		policyErr := policies.Delete(t.Context(), meta.Name, metav1.DeleteOptions{})
		bindingErr := bindings.Delete(t.Context(), meta.Name, metav1.DeleteOptions{})
		if err := errors.Join(policyErr, bindingErr); err != nil {
			t.Fatal(err)
		}
		eventually(t, "Events are accepted", probe)
	}
}
