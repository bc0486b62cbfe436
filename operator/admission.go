package operator

import (
	"context"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

const labelsPath = "/metadata/labels"

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
// checks a new spec once more by the rules in Go, so that no Task that they
// refuse is stored even where the schema was loosened by hand.
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

// onlyLabels keeps the defaulting webhook from touching anything but labels.
//
// A typed webhook answers with the difference between the object that was sent
// and the same object written by Go, and that is more than what was defaulted:
// an empty status, a null for a field that is missing, the deadline in another
// time zone. And an object that is no Task by its field types it could not
// read at all. Mutating admission comes before validation by schema, which will
// refuse such an object by the field's name, so it passes unchanged.
type onlyLabels struct {
	next    admission.Handler
	decoder admission.Decoder
}

// Handle implements admission.Handler.
func (h onlyLabels) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Delete {
		if err := h.decoder.Decode(request, &taskv1.Task{}); err != nil {
			return admission.Allowed("")
		}
	}
	response := h.next.Handle(ctx, request)
	response.Patches = slices.DeleteFunc(response.Patches, func(operation jsonpatch.Operation) bool {
		return operation.Path != labelsPath && !strings.HasPrefix(operation.Path, labelsPath+"/")
	})
	if len(response.Patches) == 0 {
		response.PatchType = nil
	}
	return response
}
