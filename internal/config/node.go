package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader is a position in the file: a node and the path of fields to it.
type reader struct {
	file string
	path string
	node *yaml.Node
}

// errorf is an error that names file, line and field.
func (r reader) errorf(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if r.path == "" {
		return fmt.Errorf("%s:%d: %s", filepath.ToSlash(r.file), r.node.Line, text)
	}
	return fmt.Errorf("%s:%d: %s: %s", filepath.ToSlash(r.file), r.node.Line, r.path, text)
}

func (r reader) child(name string, node *yaml.Node) reader {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	path := name
	if r.path != "" {
		path = r.path + "." + name
	}
	return reader{r.file, path, node}
}

func (r reader) element(i int, node *yaml.Node) reader {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return reader{r.file, fmt.Sprintf("%s[%d]", r.path, i), node}
}

// line is the element with that number, with nothing but its line.
func (r reader) line(i, line int) reader { return r.element(i, &yaml.Node{Line: line}) }

func (r reader) isNull() bool { return r.node.Kind == yaml.ScalarNode && r.node.Tag == "!!null" }

// fields reads a mapping: each key by the function of that name. An unknown or
// repeated key is an error. A mapping that is empty or null reads nothing.
func (r reader) fields(known map[string]func(reader) error) error {
	if r.isNull() {
		return nil
	}
	if r.node.Kind != yaml.MappingNode {
		return r.errorf("it must be a mapping")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(r.node.Content); i += 2 {
		key := r.node.Content[i]
		read, ok := known[key.Value]
		at := reader{r.file, r.child(key.Value, key).path, key}
		if !ok {
			return at.errorf("there is no such field; there are: %s", strings.Join(sortedKeys(known), ", "))
		}
		if seen[key.Value] {
			return at.errorf("it stands here twice")
		}
		seen[key.Value] = true
		if err := read(r.child(key.Value, r.node.Content[i+1])); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// list reads each element of a sequence.
func (r reader) list(read func(reader) error) error {
	if r.isNull() {
		return nil
	}
	if r.node.Kind != yaml.SequenceNode {
		return r.errorf("it must be a list")
	}
	for i, node := range r.node.Content {
		if err := read(r.element(i, node)); err != nil {
			return err
		}
	}
	return nil
}

// text reads a string; a number or a boolean is taken as it is written.
func (r reader) text(into *string) error {
	if r.node.Kind != yaml.ScalarNode || r.isNull() {
		return r.errorf("it must be a string")
	}
	*into = r.node.Value
	return nil
}

func (r reader) boolean(into *bool) error {
	value, err := strconv.ParseBool(r.node.Value)
	if err != nil || r.node.Kind != yaml.ScalarNode || r.node.Tag != "!!bool" {
		return r.errorf("it must be true or false")
	}
	*into = value
	return nil
}

// oneOf reads a string that is one of the values.
func (r reader) oneOf(into *string, values ...string) error {
	if err := r.text(into); err != nil {
		return err
	}
	if !slices.Contains(values, *into) {
		return r.errorf("%q is not known; there are: %s", *into, strings.Join(values, ", "))
	}
	return nil
}
