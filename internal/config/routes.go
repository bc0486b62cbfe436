package config

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// checkRoutes refuses routes to backends that are not declared and routes that
// can never match, because an earlier one takes everything that they would.
func (s *Storage) checkRoutes(r reader) error {
	for i, route := range s.Routes {
		at := reader{r.file, r.child("routes", r.node).element(i, r.node).path, &yaml.Node{Line: route.Line}}
		if !s.has(route.Backend) {
			return at.errorf("there is no backend %q; there are: %s", route.Backend, s.names())
		}
		for _, earlier := range s.Routes[:i] {
			if earlier.covers(route) {
				return at.errorf("it can never match: the route in line %d comes first and matches all that it does", earlier.Line)
			}
		}
	}
	return nil
}

// covers says that every key that matches the other route matches r as well.
// It may miss a case where globs overlap in a way that is hard to see, and
// never invents one.
func (r Route) covers(other Route) bool {
	return globCovers(r.Group, other.Group) && globCovers(r.Resource, other.Resource) &&
		globCovers(r.Namespace, other.Namespace) && globCovers(r.Name, other.Name) &&
		strings.HasPrefix(other.Prefix, r.Prefix)
}

// globCovers says that pattern matches whatever other matches; "" matches all.
// "*" does not match everything as "" does: it asks for a name to be there.
func globCovers(pattern, other string) bool {
	if pattern == "" || pattern == other {
		return true
	}
	if other == "" {
		return false
	}
	if pattern == "*" {
		return true
	}
	if strings.ContainsAny(other, `*?[\`) {
		return false
	}
	matched, err := path.Match(pattern, other)
	return err == nil && matched
}
