package config

import (
	"regexp"
	"strings"

	"github.com/taskctl-dev/taskctl/storage/kubekey"
)

// readRegexpMatcher reads HariKube's regular expressions: key is matched with
// the keys of single operations, prefix with those of lists. Here the key
// decides alone where an object is stored, and a list asks every backend that
// may hold a part of it; so prefix counts only where key is left out.
func readRegexpMatcher(r reader) ([]Route, error) {
	var prefix, key string
	expression := func(into *string) func(reader) error {
		return func(r reader) error {
			if err := r.text(into); err != nil {
				return err
			}
			if _, err := regexp.Compile(*into); err != nil {
				return r.errorf("the regular expression is broken: %v", err)
			}
			return nil
		}
	}
	err := r.fields(map[string]func(reader) error{"prefix": expression(&prefix), "key": expression(&key)})
	if err != nil {
		return nil, err
	}
	if key == "" {
		key = prefix
	}
	if key == "" {
		return nil, r.errorf("prefix and key are missing")
	}
	// HariKube's keys begin with the resource.
	if rest, ok := strings.CutPrefix(key, "^"); ok && !strings.HasPrefix(rest, "/") {
		key = "^" + kubekey.Root + rest
	}
	return []Route{{Regexp: key}}, nil
}

// readPrefixMatcher reads the beginning of keys, which is meant below
// /registry/.
func readPrefixMatcher(r reader) ([]Route, error) {
	var prefix string
	err := r.fields(map[string]func(reader) error{"prefix": func(r reader) error { return r.text(&prefix) }})
	if err != nil {
		return nil, err
	}
	if strings.Trim(prefix, "/") == "" {
		return nil, r.errorf("prefix is missing")
	}
	if !strings.HasPrefix(prefix, "/") {
		prefix = kubekey.Root + prefix
	}
	return []Route{{Prefix: prefix}}, nil
}

// readNamespaceMatcher reads a namespace: all objects in it, or with kinds
// those of these built-in resources.
func readNamespaceMatcher(r reader) ([]Route, error) {
	var namespace string
	var kinds []string
	var at []reader
	err := r.fields(map[string]func(reader) error{
		"namespace": func(r reader) error { return r.exact(&namespace) },
		"kinds": func(r reader) error {
			return r.list(func(r reader) error {
				var kind string
				err := r.exact(&kind)
				kinds, at = append(kinds, kind), append(at, r)
				return err
			})
		},
	})
	switch {
	case err != nil:
		return nil, err
	case namespace == "":
		return nil, r.errorf("namespace is missing")
	case kinds == nil:
		return []Route{{Namespace: namespace}}, nil
	}
	var routes []Route
	for i, kind := range kinds {
		if strings.ToLower(kind) != kind {
			return nil, at[i].errorf("%q is not a resource: write its plural name in small letters, such as pods", kind)
		}
		group := kubekey.BuiltInGroup(kind)
		if group == "" {
			return nil, at[i].errorf("%q is no built-in resource: for a custom resource write a backend with customresource", kind)
		}
		routes = append(routes, Route{Prefix: kubekey.Prefix(group, kind) + namespace + "/"})
	}
	return routes, nil
}

// readCustomResourceMatcher reads a group and the plural name that HariKube
// calls kind.
func readCustomResourceMatcher(r reader) ([]Route, error) {
	var group, kind string
	err := r.fields(map[string]func(reader) error{
		"group": func(r reader) error { return r.exact(&group) },
		"kind":  func(r reader) error { return r.exact(&kind) },
	})
	switch {
	case err != nil:
		return nil, err
	case !strings.Contains(group, "."):
		return nil, r.errorf("group is missing, or is not the group of a custom resource, such as stable.example.com")
	case kind == "":
		return nil, r.errorf("kind is missing: the plural name of the resource, such as shirts")
	case strings.ToLower(kind) != kind:
		return nil, r.errorf("kind: %q is not a resource: write its plural name in small letters, such as shirts", kind)
	}
	return []Route{{Prefix: kubekey.Prefix(group, kind)}}, nil
}

// exact reads a word that stands for itself: no glob, no path.
func (r reader) exact(into *string) error {
	if err := r.text(into); err != nil {
		return err
	}
	if *into == "" || strings.ContainsAny(*into, `/*?[]\ `) {
		return r.errorf("%q is not a name", *into)
	}
	return nil
}
