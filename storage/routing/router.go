package routing

import (
	"fmt"
	"slices"
)

// Default is the rule's number of a key that no rule matches.
const Default = -1

// Router is a fixed list of rules over named backends. It may be used
// concurrently.
type Router struct {
	backends []string
	rules    []compiled
	only     [][]int // by backend: the list of it alone
}

// New makes a router. The first of the backends is the default one. The error
// names the rule.
func New(backends []string, rules []Rule) (*Router, error) {
	r := &Router{backends: slices.Clone(backends)}
	for index := range backends {
		r.only = append(r.only, []int{index})
	}
	for i, rule := range rules {
		target := slices.Index(backends, rule.Backend)
		if target < 0 {
			return nil, fmt.Errorf("the route %d (%s) leads to the backend %q, which there is not", i+1, rule, rule.Backend)
		}
		c, err := compile(rule, target)
		if err != nil {
			return nil, fmt.Errorf("the route %d (%s): %w", i+1, rule, err)
		}
		r.rules = append(r.rules, c)
	}
	return r, nil
}

// Backends are the names, the default one first.
func (r *Router) Backends() []string { return r.backends }

// Rules are the rules in order.
func (r *Router) Rules() []Rule {
	rules := make([]Rule, len(r.rules))
	for i := range r.rules {
		rules[i] = r.rules[i].Rule
	}
	return rules
}

// Match returns the number of the rule that decides about a key, or Default,
// and the index of the key's backend.
func (r *Router) Match(key string) (rule, backend int) {
	if len(r.rules) == 0 {
		return Default, 0
	}
	o := parse(key)
	for i := range r.rules {
		if r.rules[i].matches(key, &o) {
			return i, r.rules[i].target
		}
	}
	return Default, 0
}

// Route is the index of the backend of a key.
func (r *Router) Route(key string) int {
	_, backend := r.Match(key)
	return backend
}

// Reads is the indexes, in order, of the backends that a read of a single key
// concerns: the key's own, and for the root of a resource those of everything
// below it, since kube-apiserver reads it to find out the resource's newest
// revision. The caller must not change the slice.
func (r *Router) Reads(key string) []int {
	own := r.Route(key)
	if !IsRoot(key) {
		return r.only[own]
	}
	below := r.Overlap(key+"/", key+"0")
	if slices.Contains(below, own) {
		return below
	}
	all := append(slices.Clone(below), own)
	slices.Sort(all)
	return all
}
