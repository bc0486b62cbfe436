package operator

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// labeller is the defaulting webhook: it keeps the labels that Tasks are
// selected by equal to the spec.
type labeller struct{}

var _ admission.Defaulter[*taskv1.Task] = labeller{}

// Default implements admission.Defaulter.
func (labeller) Default(_ context.Context, task *taskv1.Task) error {
	if task.DeletionTimestamp.IsZero() {
		task.Labels = taskv1.SetTaskLabels(task.Labels, &task.Spec)
	}
	return nil
}

// validator is the validating webhook: it warns about what needs a clock, and
// checks the spec once more by the rules in Go, which are stricter than schema
// and CEL in corners (a deadline that leaves the year 9999 in UTC).
type validator struct {
	clock clock.PassiveClock
}

var _ admission.Validator[*taskv1.Task] = validator{}

// ValidateCreate implements admission.Validator.
func (v validator) ValidateCreate(_ context.Context, task *taskv1.Task) (admission.Warnings, error) {
	return v.validate(task, nil)
}

// ValidateUpdate implements admission.Validator.
func (v validator) ValidateUpdate(_ context.Context, old, task *taskv1.Task) (admission.Warnings, error) {
	return v.validate(task, &old.Spec)
}

// ValidateDelete implements admission.Validator; every Task may be deleted.
func (validator) ValidateDelete(context.Context, *taskv1.Task) (admission.Warnings, error) {
	return nil, nil
}

// validate lets pass what is being deleted and a spec that did not change,
// whatever rules were added since it was stored.
func (v validator) validate(task *taskv1.Task, old *taskv1.TaskSpec) (admission.Warnings, error) {
	if !task.DeletionTimestamp.IsZero() || old != nil && equality.Semantic.DeepEqual(task.Spec, *old) {
		return nil, nil
	}
	if errs := taskv1.ValidateTaskSpec(&task.Spec, field.NewPath("spec")); len(errs) > 0 {
		return nil, apierrors.NewInvalid(taskv1.Kind("Task").GroupKind(), task.Name, errs)
	}
	return taskv1.DeadlineWarnings(&task.Spec, old, v.clock.Now()), nil
}

// onlyDecodable lets an object that is no Task by its field types pass
// unchanged. Mutating admission comes before validation by schema, which will
// refuse the object and name the field; the decoder's error would not.
type onlyDecodable struct {
	next    admission.Handler
	decoder admission.Decoder
}

// Handle implements admission.Handler.
func (h onlyDecodable) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Delete {
		if err := h.decoder.Decode(request, &taskv1.Task{}); err != nil {
			return admission.Allowed("")
		}
	}
	return h.next.Handle(ctx, request)
}
