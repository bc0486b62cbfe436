package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// readCRDs reads the definitions in a folder's YAML and JSON files.
func readCRDs(dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read custom resources: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read custom resources: %w", err)
		}
		inFile, err := decodeCRDs(content)
		if err != nil {
			return nil, fmt.Errorf("read custom resources: %s: %w", path, err)
		}
		crds = append(crds, inFile...)
	}
	return crds, nil
}

// decodeCRDs picks the definitions out of a file of several documents.
func decodeCRDs(content []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, err
		}
		var kind metav1.TypeMeta
		if err := json.Unmarshal(document, &kind); err != nil || kind.Kind != "CustomResourceDefinition" {
			continue // not an object of the kind that is asked for
		}
		if want := apiextensionsv1.SchemeGroupVersion.String(); kind.APIVersion != want {
			return nil, fmt.Errorf("a CustomResourceDefinition has apiVersion %q, and must have %s", kind.APIVersion, want)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(document, crd); err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
}
