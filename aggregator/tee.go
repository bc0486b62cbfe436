package aggregator

import (
	"errors"

	"k8s.io/client-go/tools/cache"
)

// tee hands what a reflector reads to several stores, one after the other, so
// that Tasks are read from the API server, and kept in memory, once.
type tee []cache.ReflectorStore

var (
	_ cache.ReflectorStore         = tee{}
	_ cache.ResourceVersionUpdater = tee{}
)

func (t tee) each(do func(cache.ReflectorStore) error) error {
	var errs []error
	for _, store := range t {
		errs = append(errs, do(store))
	}
	return errors.Join(errs...)
}

// Add implements cache.ReflectorStore.
func (t tee) Add(object any) error {
	return t.each(func(s cache.ReflectorStore) error { return s.Add(object) })
}

// Update implements cache.ReflectorStore.
func (t tee) Update(object any) error {
	return t.each(func(s cache.ReflectorStore) error { return s.Update(object) })
}

// Delete implements cache.ReflectorStore.
func (t tee) Delete(object any) error {
	return t.each(func(s cache.ReflectorStore) error { return s.Delete(object) })
}

// Replace implements cache.ReflectorStore.
func (t tee) Replace(objects []any, resourceVersion string) error {
	return t.each(func(s cache.ReflectorStore) error { return s.Replace(objects, resourceVersion) })
}

// Resync implements cache.ReflectorStore.
func (t tee) Resync() error {
	return t.each(func(s cache.ReflectorStore) error { return s.Resync() })
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater.
func (t tee) UpdateResourceVersion(resourceVersion string) {
	for _, store := range t {
		if updated, ok := store.(cache.ResourceVersionUpdater); ok {
			updated.UpdateResourceVersion(resourceVersion)
		}
	}
}
