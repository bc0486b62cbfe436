package routing

// servicesRoot is the part under which services and endpoints lie.
const servicesRoot = "services"

// Core is what rules call the group without a name.
const Core = "core"

// BuiltIn returns resource and group of the objects under /registry/PART. A
// part that it does not know is a resource of an unknown group. Events belong to
// two groups, of which the second is the alias.
//
// The names are those of Kubernetes 1.37 (test/integration/etcd/data.go,
// SpecialDefaultResourcePrefixes in pkg/kubeapiserver); a test compares them.
func BuiltIn(part string) (resource, group, alias string) {
	switch part {
	case "minions":
		return "nodes", Core, ""
	case "controllers":
		return "replicationcontrollers", Core, ""
	case "services/specs":
		return "services", Core, ""
	case "services/endpoints":
		return "endpoints", Core, ""
	case "events":
		return part, Core, "events.k8s.io"
	case "configmaps", "limitranges", "namespaces", "persistentvolumeclaims", "persistentvolumes", "pods",
		"podtemplates", "resourcequotas", "secrets", "serviceaccounts":
		return part, Core, ""
	case "controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets":
		return part, "apps", ""
	case "ingress":
		return "ingresses", "networking.k8s.io", ""
	case "ingressclasses", "ipaddresses", "networkpolicies", "servicecidrs":
		return part, "networking.k8s.io", ""
	case "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations":
		return part, "admissionregistration.k8s.io", ""
	case "clusterrolebindings", "clusterroles", "rolebindings", "roles":
		return part, "rbac.authorization.k8s.io", ""
	case "csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments", "volumeattributesclasses":
		return part, "storage.k8s.io", ""
	case "compositepodgroups", "podgroups", "priorityclasses", "workloads":
		return part, "scheduling.k8s.io", ""
	case "deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourcepoolstatusrequests", "resourceslices":
		return part, "resource.k8s.io", ""
	case "certificatesigningrequests", "clustertrustbundles", "podcertificaterequests":
		return part, "certificates.k8s.io", ""
	case "cronjobs", "jobs":
		return part, "batch", ""
	case "evictionrequests", "evictions":
		return part, "lifecycle.k8s.io", ""
	case "flowschemas", "prioritylevelconfigurations":
		return part, "flowcontrol.apiserver.k8s.io", ""
	case "leasecandidates", "leases":
		return part, "coordination.k8s.io", ""
	case "endpointslices":
		return part, "discovery.k8s.io", ""
	case "horizontalpodautoscalers":
		return part, "autoscaling", ""
	case "poddisruptionbudgets":
		return part, "policy", ""
	case "runtimeclasses":
		return part, "node.k8s.io", ""
	case "storageversionmigrations":
		return part, "storagemigration.k8s.io", ""
	case "storageversions":
		return part, "internal.apiserver.k8s.io", ""
	}
	return part, "", ""
}
