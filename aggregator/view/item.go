package view

import (
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Key names an object. Namespace is empty for cluster-scoped ones.
type Key struct {
	Namespace, Name string
}

func (k Key) less(other Key) bool {
	if k.Namespace != other.Namespace {
		return k.Namespace < other.Namespace
	}
	return k.Name < other.Name
}

// Item is one state of one object. It must never change after it was handed to
// the View: snapshots, history and watches share it.
type Item interface {
	// Key returns the object's namespace and name.
	Key() Key
	// Labels are what label selectors see.
	Labels() labels.Labels
	// Fields are what field selectors see, metadata.name and
	// metadata.namespace included.
	Fields() fields.Fields
	// Object makes an API object with this resourceVersion. The outer struct
	// is new at every call (encoders write to it), what it points to may be
	// shared and is not written to.
	Object(resourceVersion string) runtime.Object
}

// Row is an item and the number of the change that made it.
type Row struct {
	Item   Item
	Number uint64

	key Key
}

// Object makes the API object, its number as resourceVersion.
func (r *Row) Object() runtime.Object {
	return r.Item.Object(format(r.Number))
}

func lessRow(a, b *Row) bool {
	return a.key.less(b.key)
}

// format and parse turn a number into a resourceVersion and back.
func format(number uint64) string { return strconv.FormatUint(number, 10) }

func parse(resourceVersion string) (uint64, error) {
	return strconv.ParseUint(resourceVersion, 10, 64)
}
