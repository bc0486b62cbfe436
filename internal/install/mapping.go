package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is where objects of a kind live.
type target struct {
	resource   schema.GroupVersionResource
	namespaced bool
}

// targetOf knows the kinds that the manifests use. Asking the API server would
// cost several requests at every start, and a broken aggregated API could
// delay the answer.
func targetOf(kind schema.GroupVersionKind) (target, error) {
	at := func(plural string, namespaced bool) (target, error) {
		return target{resource: kind.GroupVersion().WithResource(plural), namespaced: namespaced}, nil
	}
	switch kind.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return at("namespaces", false)
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return at("serviceaccounts", true)
	case schema.GroupKind{Kind: "Service"}:
		return at("services", true)
	case schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		return at("endpointslices", true)
	case schema.GroupKind{Kind: "ConfigMap"}:
		return at("configmaps", true)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		return at("clusterroles", false)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:
		return at("clusterrolebindings", false)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}:
		return at("roles", true)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:
		return at("rolebindings", true)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return at("customresourcedefinitions", false)
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return at("apiservices", false)
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:
		return at("mutatingwebhookconfigurations", false)
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:
		return at("validatingwebhookconfigurations", false)
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:
		return at("validatingadmissionpolicies", false)
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}:
		return at("validatingadmissionpolicybindings", false)
	case schema.GroupKind{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:
		return at("flowschemas", false)
	}
	return target{}, fmt.Errorf("a manifest has the kind %s, which this program does not know how to apply", kind)
}
