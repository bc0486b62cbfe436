package stored

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// attributes are what selectors see.
func (k Kind) attributes(object runtime.Object) (labels.Set, fields.Set, error) {
	meta, spec, status, ok := parts(object)
	if !ok {
		return nil, nil, fmt.Errorf("select by fields: got a %T", object)
	}
	task := spec.TaskSpec()
	selectable := fields.Set{
		"metadata.name":  meta.Name,
		"spec.priority":  strconv.FormatInt(int64(task.Priority), 10),
		"spec.taskState": string(task.TaskState),

		"status.blockedByCount": strconv.FormatInt(int64(status.BlockedByCount), 10),
	}
	if k.Namespaced {
		selectable["metadata.namespace"] = meta.Namespace
	}
	return meta.Labels, selectable, nil
}

// predicate is what the store filters by.
func (k Kind) predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: k.attributes}
}

// FieldLabel accepts the fields that can be selected. It has the shape of a
// runtime.FieldLabelConversionFunc.
func (k Kind) FieldLabel(label, value string) (string, string, error) {
	switch {
	case label == "metadata.name", label == "spec.priority", label == "spec.taskState", label == "status.blockedByCount",
		label == "metadata.namespace" && k.Namespaced:
		return label, value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %q; supported are metadata.name, spec.priority, spec.taskState and status.blockedByCount, and metadata.namespace of a kind with namespaces", label)
}
