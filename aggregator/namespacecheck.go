package aggregator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes"
)

// namespaceCheck refuses to create an object in a namespace that does not exist
// or is being deleted, as kube-apiserver does for the objects that it stores:
// nobody would ever delete it.
//
// It asks for the namespace at each create. An informer would know it a little
// too late, and would need the right to list all of them.
type namespaceCheck struct {
	*admission.Handler
	client kubernetes.Interface
}

var _ admission.ValidationInterface = (*namespaceCheck)(nil)

func newNamespaceCheck(client kubernetes.Interface) *namespaceCheck {
	return &namespaceCheck{Handler: admission.NewHandler(admission.Create), client: client}
}

// Validate implements admission.ValidationInterface.
func (c *namespaceCheck) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetNamespace() == "" || a.GetSubresource() != "" {
		return nil
	}
	namespace, err := c.client.CoreV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("read namespace %s: %w", a.GetNamespace(), err))
	}
	if namespace.DeletionTimestamp == nil && namespace.Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	refusal := apierrors.NewForbidden(a.GetResource().GroupResource(), a.GetName(),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace.Name))
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", namespace.Name),
		Field:   "metadata.namespace",
	})
	return refusal
}
