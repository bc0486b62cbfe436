package kubekey

import (
	"slices"

	"github.com/taskctl-dev/taskctl/storage/routing"
)

// Core is how the group without a name is called where "" means any group.
const Core = routing.Core

// groupsOf are the groups of a built-in resource, whose keys don't name them.
// Events have two, with one place for both.
func groupsOf(resource string) []string {
	_, group, alias := routing.BuiltIn(folderOf(resource))
	switch {
	case group == "":
		return nil
	case alias == "":
		return []string{group}
	}
	return []string{group, alias}
}

// folders are the built-in resources that lie under another word than their
// own (SpecialDefaultResourcePrefixes of kube-apiserver).
var folders = [...]struct{ resource, folder string }{
	{"replicationcontrollers", "controllers"},
	{"endpoints", "services/endpoints"},
	{"nodes", "minions"},
	{"services", "services/specs"},
	{"ingresses", "ingress"},
}

func folderOf(resource string) string {
	for _, special := range folders {
		if special.resource == resource {
			return special.folder
		}
	}
	return resource
}

// IsBuiltIn says that the resource is one of Kubernetes' own in that group; ""
// and Core are the group without a name.
func IsBuiltIn(group, resource string) bool {
	if group == "" {
		group = Core
	}
	return slices.Contains(groupsOf(resource), group)
}

// BuiltInGroup is the group of a built-in resource, "" for one that is not
// known. Of two it is the one that keys are named after: core Events.
func BuiltInGroup(resource string) string {
	if groups := groupsOf(resource); len(groups) > 0 {
		return groups[0]
	}
	return ""
}
