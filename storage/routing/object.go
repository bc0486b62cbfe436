package routing

import "strings"

// Root is where kube-apiserver keeps all objects.
const Root = "/registry/"

// object is what a key says of the object under it. Built-in kinds have keys
// /registry/RESOURCE/…, custom and aggregated ones /registry/GROUP/RESOURCE/…;
// …is NAMESPACE/NAME, or NAME where there are no namespaces.
type object struct {
	known      bool   // the key is below Root
	group      string // "" if it is not known
	alias      string // a second group of the same objects; "" is none
	resource   string
	namespaced bool // namespace is set
	named      bool // the key is longer than the resource's root; name may be empty
	namespace  string
	name       string
}

// parse takes a key apart.
func parse(key string) object {
	rest, ok := strings.CutPrefix(key, Root)
	if !ok {
		return object{}
	}
	o := object{known: true}
	rest, more := o.readResource(rest)
	if !more {
		return o
	}
	o.named = true
	namespace, name, namespaced := strings.Cut(rest, "/")
	if namespaced {
		o.namespaced, o.namespace, o.name = true, namespace, name
	} else {
		o.name = rest
	}
	return o
}

// readResource reads group and resource and returns what is behind them, and
// whether there was a slash.
func (o *object) readResource(path string) (rest string, more bool) {
	first, rest, more := strings.Cut(path, "/")
	if isGroup(first) {
		o.group = first
		o.resource, rest, more = strings.Cut(rest, "/")
		return rest, more
	}
	if first == servicesRoot && more {
		second, below, deeper := strings.Cut(rest, "/")
		first, rest, more = first+"/"+second, below, deeper
	}
	o.resource, o.group, o.alias = BuiltIn(first)
	return rest, more
}

// isGroup says that the first part of a path is a group: those of custom
// resources must have a dot, and no built-in resource has one.
func isGroup(part string) bool { return strings.Contains(part, ".") }

// IsRoot says that the key is the root of a resource without a slash, which
// kube-apiserver reads to find out the newest revision. Outside of Root any
// key may be one.
func IsRoot(key string) bool {
	o := parse(key)
	return !o.known || !o.named
}
