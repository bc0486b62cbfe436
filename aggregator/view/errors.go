package view

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// retryAfterSeconds is what a client is told to wait while the View is not
// populated yet: that takes as long as listing what it is computed from.
const retryAfterSeconds = 1

// NewUnavailable makes a 503 with Retry-After.
func NewUnavailable(resource schema.GroupResource, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusServiceUnavailable,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("%s: %s", resource, message),
		Details: &metav1.StatusDetails{
			Group:             resource.Group,
			Kind:              resource.Resource,
			RetryAfterSeconds: retryAfterSeconds,
		},
	}}
}

func errNotPopulated(resource schema.GroupResource) error {
	return NewUnavailable(resource, "not synced yet, try again")
}

func errNotHeld(resourceVersion string) *apierrors.StatusError {
	return apierrors.NewResourceExpired(fmt.Sprintf(
		"too old or unknown resource version: %s was not handed out by this server since its start, or its history is gone; list again", resourceVersion))
}

func errFellBehind(number uint64) *apierrors.StatusError {
	return apierrors.NewResourceExpired(fmt.Sprintf(
		"too old resource version: this watch fell behind what the history holds after %d; list again", number))
}

// errPagesGone says that the snapshot of a paged list is gone and hands over a
// token that goes on in the newest state.
func errPagesGone(token string) error {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
		"Continuing with the provided token results in an inconsistent list: objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	err.ErrStatus.ListMeta.Continue = token
	return err
}
