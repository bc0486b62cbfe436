package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// Read reads and checks a configuration file.
func Read(file string) (Config, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("reading the configuration file: %w", err)
	}
	return Parse(file, content)
}

// Parse reads and checks the content of a configuration file; file is its name
// in errors.
func Parse(file string, content []byte) (Config, error) {
	config := Config{File: file}
	root, err := parseDocument(file, content, "it begins with apiVersion: "+APIVersion+" and kind: "+Kind)
	if err != nil {
		return config, err
	}
	var apiVersion, kind string
	err = root.fields(map[string]func(reader) error{
		"apiVersion": func(r reader) error { return r.oneOf(&apiVersion, APIVersion) },
		"kind":       func(r reader) error { return r.oneOf(&kind, Kind) },
		"cluster":    config.Cluster.read,
		"storage":    config.Storage.read,
	})
	switch {
	case err != nil:
		return config, err
	case apiVersion == "":
		return config, root.errorf("apiVersion is missing: %s", APIVersion)
	case kind == "":
		return config, root.errorf("kind is missing: %s", Kind)
	}
	return config, nil
}

// parseDocument parses a file of one document; hint says what an empty one
// lacks.
func parseDocument(file string, content []byte, hint string) (reader, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return reader{}, fmt.Errorf("%s: the file is empty; %s", file, hint)
		}
		return reader{}, fmt.Errorf("%s: %w", file, err)
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return reader{}, fmt.Errorf("%s:%d: there is a second document; one file describes one appliance", file, max(second.Line, 1))
	}
	return reader{file: file, node: document.Content[0]}, nil
}

func (c *Cluster) read(r reader) error {
	c.Line = r.node.Line
	return r.fields(map[string]func(reader) error{
		"driver":        func(r reader) error { return r.oneOf(&c.Driver, "auto", "embedded", "kind") },
		"apiServerArgs": c.readArgs,
		"kind":          c.Kind.read,
	})
}

// readArgs reads flags: each with a value or a list of values.
func (c *Cluster) readArgs(r reader) error {
	if r.isNull() {
		return nil
	}
	if r.node.Kind != yaml.MappingNode {
		return r.errorf("it must be a mapping from flags to values")
	}
	c.APIServerArgs = map[string][]string{}
	for i := 0; i+1 < len(r.node.Content); i += 2 {
		name := r.node.Content[i].Value
		if _, twice := c.APIServerArgs[name]; twice {
			return reader{r.file, r.path + "." + name, r.node.Content[i]}.errorf("it stands here twice")
		}
		value := r.child(name, r.node.Content[i+1])
		var values []string
		read := func(r reader) error {
			var text string
			err := r.text(&text)
			values = append(values, text)
			return err
		}
		var err error
		if value.node.Kind == yaml.SequenceNode {
			err = value.list(read)
		} else {
			err = read(value)
		}
		if err != nil {
			return err
		}
		c.APIServerArgs[name] = values
	}
	return nil
}
