package routing

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// share is how much of a range of keys a rule matches, as far as can be told.
type share int

const (
	none  share = iota // certainly no key
	some               // perhaps some
	whole              // certainly every key
)

// Overlap is the indexes, in order, of all backends that keys of [from, end)
// can be routed to; an empty end means no upper bound. It never leaves one out.
// For what Kubernetes asks for (everything below a resource or a namespace, also
// from the middle on) it names none that holds no such key, as far as the rules
// tell. The caller must not change the slice.
func (r *Router) Overlap(from, end string) []int {
	common := commonStart(from, end)
	first, several := -1, false
	var seen []int
	reach := func(backend int) {
		switch {
		case first < 0:
			first = backend
		case backend == first || several && slices.Contains(seen, backend):
		case !several:
			several, seen = true, []int{first, backend}
		default:
			seen = append(seen, backend)
		}
	}
	complete := false
	for i := range r.rules {
		if !meets(r.rules[i].start, from, end) {
			continue
		}
		part := r.rules[i].shareOf(common)
		if part == none {
			continue
		}
		reach(r.rules[i].target)
		if part == whole {
			complete = true
			break
		}
	}
	if !complete {
		reach(0)
	}
	if !several {
		return r.only[first]
	}
	slices.Sort(seen)
	return seen
}

// commonStart is what all keys of [from, end) begin with.
func commonStart(from, end string) string {
	n := 0
	for n < len(from) && n < len(end) && from[n] == end[n] {
		n++
	}
	// The end of a prefix is the prefix with its last byte increased.
	if n == len(end)-1 && n < len(from) && from[n] < 0xff && from[n]+1 == end[n] {
		n++
	}
	return from[:n]
}

// meets says whether a key that begins with start can lie in [from, end).
func meets(start, from, end string) bool {
	if end != "" && start >= end {
		return false
	}
	return start >= from || strings.HasPrefix(from, start)
}

// findStart is what every key that the rule matches begins with. A prefix's key
// without its slash counts, too.
func (r *compiled) findStart() string {
	start := strings.TrimSuffix(r.Prefix, "/")
	longer := func(other string) {
		if len(other) > len(start) {
			start = other
		}
	}
	if r.structured() {
		longer(Root)
		if r.Group != "" && literalStart(r.Group) == r.Group && isGroup(r.Group) && !mayBeBuiltin(r.Group) {
			path := Root + r.Group
			if r.Resource != "" {
				path += "/" + literalStart(r.Resource)
				if literalStart(r.Resource) == r.Resource && r.Namespace != "" {
					path += "/" + literalStart(r.Namespace)
				}
			}
			longer(path)
		}
	}
	if r.Regexp != "" {
		longer(regexpStart(r.Regexp))
	}
	return start
}

// mayBeBuiltin says that built-in objects, whose keys have no group, may belong
// to the group.
func mayBeBuiltin(group string) bool { return strings.HasSuffix(group, ".k8s.io") }

// regexpStart is the literal text with which every match of an anchored
// expression begins, "" if there is none.
func regexpStart(expression string) string {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return ""
	}
	parsed = parsed.Simplify()
	if parsed.Op != syntax.OpConcat || len(parsed.Sub) < 2 || parsed.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	literal := parsed.Sub[1]
	if literal.Op != syntax.OpLiteral || literal.Flags&syntax.FoldCase != 0 {
		return ""
	}
	return string(literal.Rune)
}

// shareOf says how much of the keys that begin with start the rule matches.
func (r *compiled) shareOf(start string) share {
	part := min(r.shareOfPrefix(start), r.shareOfObjects(start))
	if r.automaton == nil || part == none {
		return part
	}
	return min(part, r.automaton.shareOf(start))
}

func (r *Rule) shareOfPrefix(start string) share {
	switch {
	case strings.HasPrefix(start, r.Prefix):
		return whole
	case strings.HasPrefix(r.Prefix, start):
		return some
	}
	return none
}

// shareOfObjects compares the parts that the start has in full, and the one
// that it ends in.
func (r *Rule) shareOfObjects(start string) share {
	if !r.structured() {
		return whole
	}
	path, ok := strings.CutPrefix(start, Root)
	if !ok {
		if strings.HasPrefix(Root, start) {
			return some
		}
		return none
	}
	var o object
	first, _, more := strings.Cut(path, "/")
	if !more {
		return some // the first part may go on
	}
	if part, grouped := r.shareOfGroup(first, path); grouped {
		return part
	}
	if strings.Count(path, "/") < 2 && first == servicesRoot {
		return some
	}
	rest, more := o.readResource(path)
	switch {
	case !globAny(r.Group, o.group, o.alias):
		return none
	case !more: // the resource may go on
		return some
	case !glob(r.Resource, o.resource):
		return none
	}
	return r.shareOfNames(rest)
}

// shareOfGroup answers for a start that has a group and no full resource.
func (r *Rule) shareOfGroup(first, path string) (share, bool) {
	if !isGroup(first) || strings.Count(path, "/") > 1 {
		return none, false
	}
	switch {
	case !glob(r.Group, first):
		return none, true
	case !globStart(r.Resource, path[len(first)+1:]):
		return none, true
	case r.Resource == "" && r.Namespace == "" && r.Name == "":
		return whole, true
	}
	return some, true
}

// shareOfNames answers for all keys of a resource that begin with rest.
func (r *Rule) shareOfNames(rest string) share {
	namespace, name, namespaced := strings.Cut(rest, "/")
	if !namespaced {
		// What is there begins a namespace, or a name without one.
		switch {
		case r.Namespace == "" && (r.Name == "" || r.Name == "*"):
			return whole
		case r.Namespace != "" && !globStart(r.Namespace, namespace):
			return none
		}
		return some
	}
	switch {
	case !glob(r.Namespace, namespace):
		return none
	case r.Name == "" || r.Name == "*":
		return whole
	case !globStart(r.Name, name):
		return none
	}
	return some
}
