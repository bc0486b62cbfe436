package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// decode parses a kubeconfig; an empty one is an empty configuration.
func decode(content []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	if document.Kind == 0 || isNull(document.Content[0]) {
		return emptyDocument(), nil
	}
	if document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is no kubeconfig: not a mapping")
	}
	for _, list := range []string{"clusters", "users", "contexts"} {
		if node := get(&document, list); node != nil && node.Kind != yaml.SequenceNode && !isNull(node) {
			return nil, fmt.Errorf("it is no kubeconfig: %s is not a list (line %d)", list, node.Line)
		}
	}
	return &document, nil
}

func encode(document *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent() // as kubectl writes it
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

func emptyDocument() *yaml.Node {
	document := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	setScalar(document, "apiVersion", "v1")
	setScalar(document, "kind", "Config")
	return document
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// mappingOf is the mapping behind a document, an alias or itself; nil if there
// is none.
func mappingOf(node *yaml.Node) *yaml.Node {
	for node != nil {
		switch node.Kind {
		case yaml.DocumentNode:
			node = node.Content[0]
		case yaml.AliasNode:
			node = node.Alias
		case yaml.MappingNode:
			return node
		default:
			return nil
		}
	}
	return nil
}

// get is the value of a key of a mapping, nil if there is none.
func get(node *yaml.Node, key string) *yaml.Node {
	mapping := mappingOf(node)
	if mapping == nil {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func scalar(node *yaml.Node, key string) string {
	if value := get(node, key); value != nil && value.Kind == yaml.ScalarNode && !isNull(value) {
		return value.Value
	}
	return ""
}

// set replaces or appends the value of a key.
func set(node *yaml.Node, key string, value *yaml.Node) {
	mapping := mappingOf(node)
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content[i+1] = value
			return
		}
	}
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

func setScalar(node *yaml.Node, key, value string) {
	if old := get(node, key); old != nil && old.Kind == yaml.ScalarNode && !isNull(old) {
		old.Value, old.Tag = value, "!!str"
		return
	}
	set(node, key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value})
}

// find is the element of the list that has the name, nil if there is none.
func find(node *yaml.Node, list, name string) *yaml.Node {
	sequence := get(node, list)
	if sequence == nil || sequence.Kind != yaml.SequenceNode {
		return nil
	}
	for _, element := range sequence.Content {
		if scalar(element, "name") == name {
			return element
		}
	}
	return nil
}

// item is the mapping under key in the list's element of that name; both are
// made if need be.
func item(node *yaml.Node, list, name, key string) *yaml.Node {
	sequence := get(node, list)
	if sequence == nil || sequence.Kind != yaml.SequenceNode {
		sequence = &yaml.Node{Kind: yaml.SequenceNode}
		set(node, list, sequence)
	}
	element := find(node, list, name)
	if element == nil {
		element = &yaml.Node{Kind: yaml.MappingNode}
		setScalar(element, "name", name)
		sequence.Content = append(sequence.Content, element)
		sequence.Style = 0 // "[]" was in flow style
	}
	value := mappingOf(get(element, key))
	if value == nil {
		value = &yaml.Node{Kind: yaml.MappingNode}
		set(element, key, value)
	}
	return value
}

// drop takes the element of that name out of the list.
func drop(node *yaml.Node, list, name string) {
	sequence, element := get(node, list), find(node, list, name)
	if element == nil {
		return
	}
	for i, candidate := range sequence.Content {
		if candidate == element {
			sequence.Content = append(sequence.Content[:i], sequence.Content[i+1:]...)
			break
		}
	}
	if len(sequence.Content) == 0 {
		sequence.Style = yaml.FlowStyle
	}
}
