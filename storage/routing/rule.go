package routing

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Rule sends the keys that match every field given to a backend. A field that
// is empty matches all keys.
//
// Group, Resource, Namespace and Name are globs (path.Match). They only match
// keys below /registry/, and only those that have such a part: Namespace "*" is
// every namespaced object. Kubernetes' group without a name is called "core".
type Rule struct {
	Backend   string `json:"backend"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Prefix is the beginning of a key. One that ends with a slash matches
	// the key without it, too: that is what kube-apiserver reads to find out
	// the newest revision of a resource.
	Prefix string `json:"prefix,omitempty"`
	// Regexp matches somewhere in a key (RE2 syntax).
	Regexp string `json:"regexp,omitempty"`
	// Source says where the rule is written, for people: "taskctl.yaml:12".
	Source string `json:"-"`
}

// String is the rule as people write it: its fields without the backend.
func (r Rule) String() string {
	var fields []string
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, name+"="+value)
		}
	}
	add("group", r.Group)
	add("resource", r.Resource)
	add("namespace", r.Namespace)
	add("name", r.Name)
	add("prefix", r.Prefix)
	add("regexp", r.Regexp)
	if len(fields) == 0 {
		return "every key"
	}
	return strings.Join(fields, " ")
}

// structured says that the rule asks for parts of an object's key.
func (r *Rule) structured() bool {
	return r.Group != "" || r.Resource != "" || r.Namespace != "" || r.Name != ""
}

// compiled is a rule of a router.
type compiled struct {
	Rule
	target     int            // index of the backend
	start      string         // what all keys of the rule begin with
	expression *regexp.Regexp // nil without one
	automaton  *automaton     // the same; nil without one
}

func compile(rule Rule, target int) (compiled, error) {
	c := compiled{Rule: rule, target: target}
	for _, pattern := range []string{rule.Group, rule.Resource, rule.Namespace, rule.Name} {
		if _, err := path.Match(pattern, ""); err != nil {
			return c, fmt.Errorf("the glob %q is broken", pattern)
		}
	}
	if rule.Regexp != "" {
		var err error
		if c.expression, err = regexp.Compile(rule.Regexp); err != nil {
			return c, fmt.Errorf("the regular expression is broken: %w", err)
		}
		if c.automaton, err = newAutomaton(rule.Regexp); err != nil {
			return c, fmt.Errorf("the regular expression is broken: %w", err)
		}
	}
	c.start = c.findStart()
	return c, nil
}

// matches says whether a key belongs to the rule; o is what parse says of it.
func (r *compiled) matches(key string, o *object) bool {
	if r.Prefix != "" && !strings.HasPrefix(key, r.Prefix) && key+"/" != r.Prefix {
		return false
	}
	if r.structured() {
		if !o.known || !globAny(r.Group, o.group, o.alias) || !glob(r.Resource, o.resource) {
			return false
		}
		if r.Namespace != "" && (!o.namespaced || !glob(r.Namespace, o.namespace)) {
			return false
		}
		if r.Name != "" && (!o.named || !glob(r.Name, o.name)) {
			return false
		}
	}
	return r.expression == nil || r.expression.MatchString(key)
}

// glob says whether the pattern matches a part that is there. "" and "*" match
// all of them.
func glob(pattern, value string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	matched, err := path.Match(pattern, value)
	return matched && err == nil
}

func globAny(pattern, value, alias string) bool {
	return glob(pattern, value) || alias != "" && glob(pattern, alias)
}

// globStart says whether the pattern can match something that begins with
// start. It may say so of a pattern that can't.
func globStart(pattern, start string) bool {
	if pattern == "" {
		return true
	}
	literal := literalStart(pattern)
	if literal == pattern {
		return strings.HasPrefix(pattern, start)
	}
	return strings.HasPrefix(literal, start) || strings.HasPrefix(start, literal)
}

// literalStart is the part of a pattern before its first special character.
func literalStart(pattern string) string {
	if at := strings.IndexAny(pattern, `*?[\`); at >= 0 {
		return pattern[:at]
	}
	return pattern
}
