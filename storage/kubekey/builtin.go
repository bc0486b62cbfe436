package kubekey

import "slices"

// Core is how the group without a name is called where "" means any group.
const Core = "core"

// groupsOf are the groups of built-in resources, whose keys don't name them.
// Events have two, with one place for both.
func groupsOf(resource string) []string {
	switch resource {
	case "configmaps", "endpoints", "limitranges", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes",
		"pods", "podtemplates", "replicationcontrollers", "resourcequotas", "secrets", "serviceaccounts", "services":
		return []string{Core}
	case "events":
		return []string{Core, "events.k8s.io"}
	case "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations":
		return []string{"admissionregistration.k8s.io"}
	case "controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets":
		return []string{"apps"}
	case "horizontalpodautoscalers":
		return []string{"autoscaling"}
	case "cronjobs", "jobs":
		return []string{"batch"}
	case "certificatesigningrequests", "clustertrustbundles", "podcertificaterequests":
		return []string{"certificates.k8s.io"}
	case "leasecandidates", "leases":
		return []string{"coordination.k8s.io"}
	case "endpointslices":
		return []string{"discovery.k8s.io"}
	case "flowschemas", "prioritylevelconfigurations":
		return []string{"flowcontrol.apiserver.k8s.io"}
	case "storageversions":
		return []string{"internal.apiserver.k8s.io"}
	case "evictionrequests", "evictions":
		return []string{"lifecycle.k8s.io"}
	case "ingressclasses", "ingresses", "ipaddresses", "networkpolicies", "servicecidrs":
		return []string{"networking.k8s.io"}
	case "runtimeclasses":
		return []string{"node.k8s.io"}
	case "poddisruptionbudgets":
		return []string{"policy"}
	case "clusterrolebindings", "clusterroles", "rolebindings", "roles":
		return []string{"rbac.authorization.k8s.io"}
	case "deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourcepoolstatusrequests", "resourceslices":
		return []string{"resource.k8s.io"}
	case "compositepodgroups", "podgroups", "priorityclasses", "workloads":
		return []string{"scheduling.k8s.io"}
	case "csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments", "volumeattributesclasses":
		return []string{"storage.k8s.io"}
	case "storageversionmigrations":
		return []string{"storagemigration.k8s.io"}
	}
	return nil
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
