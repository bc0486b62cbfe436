package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// load reads every object of the YAML files in folders of files, in the order
// of their names.
func load(files fs.FS, folders ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, folder := range folders {
		entries, err := fs.ReadDir(files, folder)
		if err != nil {
			return nil, fmt.Errorf("reading the manifests in %s: %w", folder, err)
		}
		for _, entry := range entries {
			name := path.Join(folder, entry.Name())
			content, err := fs.ReadFile(files, name)
			if err != nil {
				return nil, fmt.Errorf("reading the manifest %s: %w", name, err)
			}
			decoded, err := decode(content)
			if err != nil {
				return nil, fmt.Errorf("reading the manifest %s: %w", name, err)
			}
			objects = append(objects, decoded...)
		}
	}
	return objects, nil
}

// decode reads a stream of YAML documents; empty ones are left out.
func decode(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
