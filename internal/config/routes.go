package config

import (
	"cmp"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/taskctl-dev/taskctl/storage/kubekey"
)

// checkRoutes refuses routes to backends that are not declared and routes that
// can never match, because an earlier one takes everything that they would.
func (s *Storage) checkRoutes(r reader) error {
	for i, route := range s.Routes {
		at := r.child("routes", r.node).line(i, route.Line)
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
// It may miss a case where globs or expressions overlap in a way that is hard to
// see, and never invents one.
func (r Route) covers(other Route) bool {
	if !strings.HasPrefix(other.Prefix, r.Prefix) || !r.expressionCovers(other) {
		return false
	}
	groups := []string{other.Group}
	if said, ok := kubekey.Parse(other.Prefix); ok && strings.HasSuffix(other.Prefix, "/") {
		// A prefix of whole parts says what the fields would.
		other.Resource = cmp.Or(other.Resource, said.Resource)
		other.Namespace = cmp.Or(other.Namespace, said.Namespace)
		if other.Group == "" && len(said.Groups) > 0 {
			groups = said.Groups
		}
	}
	return slices.ContainsFunc(groups, func(group string) bool { return globCovers(r.Group, group) }) &&
		globCovers(r.Resource, other.Resource) && globCovers(r.Namespace, other.Namespace) && globCovers(r.Name, other.Name)
}

// expressionCovers compares the regular expressions. One that matches a prefix
// matches what is longer, unless it asks for an end.
func (r Route) expressionCovers(other Route) bool {
	if r.Regexp == "" || r.Regexp == other.Regexp {
		return true
	}
	if other.Prefix == "" {
		return false
	}
	expression, err := regexp.Compile(r.Regexp)
	if err != nil {
		return false
	}
	parsed, err := syntax.Parse(r.Regexp, syntax.Perl)
	return err == nil && !asksForEnd(parsed) && expression.MatchString(other.Prefix)
}

// asksForEnd says that a text that goes on may not match any more.
func asksForEnd(expression *syntax.Regexp) bool {
	switch expression.Op {
	case syntax.OpEndLine, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(expression.Sub, asksForEnd)
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
