package stored

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// statusStrategy says what happens to an object on its way into the store
// through the subresource status: nothing but the status changes.
type statusStrategy struct {
	strategy
}

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (statusStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	meta, spec, _, ok := parts(object)
	oldMeta, oldSpec, _, oldOK := parts(old)
	if !ok || !oldOK {
		return
	}
	*spec = *oldSpec
	metav1.ResetObjectMetaForStatus(meta, oldMeta)
}

// ValidateUpdate implements rest.RESTUpdateStrategy. The spec is the stored
// one.
func (statusStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	reset := resetFields("spec")
	for _, set := range reset {
		set.Insert(fieldpath.MakePathOrDie("metadata"))
	}
	return reset
}

// StatusREST serves the subresource status.
type StatusREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Getter              = (*StatusREST)(nil)
	_ rest.Patcher             = (*StatusREST)(nil)
	_ rest.TableConvertor      = (*StatusREST)(nil)
	_ rest.ResetFieldsStrategy = (*StatusREST)(nil)
)

// New implements rest.Storage.
func (r *StatusREST) New() runtime.Object { return r.store.New() }

// Destroy implements rest.Storage. The store is destroyed by the resource.
func (r *StatusREST) Destroy() {}

// Get implements rest.Getter.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update implements rest.Updater.
func (r *StatusREST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	// A status can't be written of what is not there.
	return r.store.Update(ctx, name, object, createValidation, updateValidation, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (r *StatusREST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}
