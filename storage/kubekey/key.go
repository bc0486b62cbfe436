package kubekey

import (
	"strings"

	"github.com/taskctl-dev/taskctl/storage/routing"
)

// Root is the beginning of all keys of Kubernetes.
const Root = routing.Root

// Key is what a key says.
type Key struct {
	// Groups are those that the resource belongs to; the group without a
	// name is Core. It is empty for a word that stands for no resource, such
	// as ranges and masterleases.
	Groups []string
	// Resource is the plural name.
	Resource string
	// Namespace is empty for a resource that has none.
	Namespace string
	// Name is empty for a key that ends before it, such as a resource's root.
	Name string
}

// Parse says what a key stands for, and false if it is none of Kubernetes'.
func Parse(key string) (Key, bool) {
	rest, ok := strings.CutPrefix(key, Root)
	if !ok || rest == "" {
		return Key{}, false
	}
	for _, special := range folders {
		if after, ok := cutFolder(rest, special.folder); ok {
			return named(Key{Groups: groupsOf(special.resource), Resource: special.resource}, after), true
		}
	}
	first, after, _ := strings.Cut(rest, "/")
	if !strings.Contains(first, ".") {
		return named(Key{Groups: groupsOf(first), Resource: first}, after), true
	}
	resource, after, _ := strings.Cut(after, "/")
	return named(Key{Groups: []string{first}, Resource: resource}, after), true
}

// cutFolder returns what follows the folder and its slash.
func cutFolder(rest, folder string) (string, bool) {
	after, ok := strings.CutPrefix(rest, folder)
	if !ok || after != "" && after[0] != '/' {
		return "", false
	}
	return strings.TrimPrefix(after, "/"), true
}

// named adds namespace and name: NAME, or NAMESPACE/NAME. A namespace that is
// not followed by a name is read as such only by its slash.
func named(key Key, rest string) Key {
	first, second, both := strings.Cut(rest, "/")
	if both {
		key.Namespace, key.Name = first, second
	} else {
		key.Name = first
	}
	return key
}

// Prefix is where a resource's keys begin, with a slash at the end. group is
// its API group, "" or Core for the one without a name.
func Prefix(group, resource string) string {
	if IsBuiltIn(group, resource) {
		return Root + folderOf(resource) + "/"
	}
	return Root + group + "/" + resource + "/"
}

// Of is the key of one object; namespace is "" where the resource has none.
func Of(group, resource, namespace, name string) string {
	prefix := Prefix(group, resource)
	if namespace != "" {
		prefix += namespace + "/"
	}
	return prefix + name
}
