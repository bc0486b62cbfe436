package stored

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	genericvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// strategy says what happens to an object on its way into the store, through
// the resource itself.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind  Kind
	clock clock.PassiveClock
}

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
)

// NamespaceScoped implements rest.RESTCreateStrategy.
func (s strategy) NamespaceScoped() bool { return s.kind.Namespaced }

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy: an update of what is
// not there is 404, as for a Task.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy: an update
// without a resourceVersion replaces whatever is there.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize implements rest.RESTCreateStrategy.
func (strategy) Canonicalize(runtime.Object) {}

// PrepareForCreate implements rest.RESTCreateStrategy.
func (strategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	meta, spec, status, ok := parts(object)
	if !ok {
		return
	}
	*status = searchv1.StoredTaskStatus{}
	meta.Generation = 1
	complete(meta, spec)
}

// PrepareForUpdate implements rest.RESTUpdateStrategy. The status is changed
// through its subresource only, and the generation counts changes of the spec.
func (strategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	meta, spec, status, ok := parts(object)
	oldMeta, oldSpec, oldStatus, oldOK := parts(old)
	if !ok || !oldOK {
		return
	}
	*status = *oldStatus
	complete(meta, spec)
	meta.Generation = oldMeta.Generation
	if !equality.Semantic.DeepEqual(spec, oldSpec) {
		meta.Generation++
	}
}

// complete sets what Task's defaults and its defaulting webhook set.
func complete(meta *metav1.ObjectMeta, spec *searchv1.StoredTaskSpec) {
	Default(spec)
	task := spec.TaskSpec()
	meta.Labels = taskv1.SetTaskLabels(meta.Labels, &task)
}

// Default fills in what the user left out.
func Default(spec *searchv1.StoredTaskSpec) {
	task := spec.TaskSpec()
	taskv1.DefaultTaskSpec(&task)
	spec.TaskState = task.TaskState
}

// Validate implements rest.RESTCreateStrategy.
func (s strategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	meta, spec, _, ok := parts(object)
	if !ok {
		return unexpected(object)
	}
	errs := genericvalidation.ValidateObjectMeta(meta, s.kind.Namespaced, genericvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateSpec(spec)...)
}

// ValidateUpdate implements rest.RESTUpdateStrategy. What is being deleted is
// not validated, so that its finalizers can always go.
func (strategy) ValidateUpdate(_ context.Context, object, _ runtime.Object) field.ErrorList {
	meta, spec, _, ok := parts(object)
	if !ok {
		return unexpected(object)
	}
	if meta.DeletionTimestamp != nil {
		return nil
	}
	return validateSpec(spec)
}

func unexpected(object runtime.Object) field.ErrorList {
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("got a %T", object))}
}

func validateSpec(spec *searchv1.StoredTaskSpec) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if spec.Priority == nil {
		errs = append(errs, field.Required(path.Child("priority"), ""))
	}
	errs = append(errs, validateDependsOn(spec.DependsOn, path.Child("dependsOn"))...)
	task := spec.TaskSpec()
	return append(errs, taskv1.ValidateTaskSpec(&task, path)...)
}

// maxDependsOn is how many tasks one may depend on: far more than anybody
// needs, and few enough for all to be looked at whenever one of them changes.
const maxDependsOn = 1000

// validateDependsOn checks the names. Whether they close a cycle is checked
// right before the write, see change.
func validateDependsOn(dependsOn []string, path *field.Path) field.ErrorList {
	if len(dependsOn) > maxDependsOn {
		return field.ErrorList{field.TooMany(path, len(dependsOn), maxDependsOn)}
	}
	var errs field.ErrorList
	seen := make(map[string]bool, len(dependsOn))
	for i, name := range dependsOn {
		for _, message := range genericvalidation.NameIsDNSSubdomain(name, false) {
			errs = append(errs, field.Invalid(path.Index(i), name, message))
		}
		if seen[name] {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
		seen[name] = true
	}
	return errs
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (s strategy) WarningsOnCreate(_ context.Context, object runtime.Object) []string {
	_, spec, _, ok := parts(object)
	if !ok {
		return nil
	}
	task := spec.TaskSpec()
	return taskv1.DeadlineWarnings(&task, nil, s.now())
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s strategy) WarningsOnUpdate(_ context.Context, object, old runtime.Object) []string {
	_, spec, _, ok := parts(object)
	_, oldSpec, _, oldOK := parts(old)
	if !ok || !oldOK {
		return nil
	}
	task, oldTask := spec.TaskSpec(), oldSpec.TaskSpec()
	return taskv1.DeadlineWarnings(&task, &oldTask, s.now())
}

func (s strategy) now() time.Time { return s.clock.Now() }

// GetResetFields implements rest.ResetFieldsStrategy: who applies an object
// with a status does not come to own that.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

func resetFields(path string) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(searchv1.GroupVersion().String()): fieldpath.NewSet(fieldpath.MakePathOrDie(path)),
	}
}
