package embedded

import (
	"context"
	"slices"

	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// roleSteps are the default roles and bindings of RBAC. What somebody has added
// to them stays, what was taken away comes back, and an object with the
// annotation rbac.authorization.kubernetes.io/autoupdate=false is left alone:
// the reconciliation is Kubernetes' own. Its migration of roles from clusters
// before 1.9 is left out.
func roleSteps(client kubernetes.Interface) []bootstrapStep {
	var steps []bootstrapStep
	role := func(object string, owner reconciliation.RuleOwner, modifier reconciliation.RuleOwnerModifier) {
		options := reconciliation.ReconcileRoleOptions{Role: owner, Client: modifier, Confirm: true}
		steps = append(steps, bootstrapStep{object, func(context.Context) error {
			_, err := options.Run()
			return err
		}})
	}
	binding := func(object string, adapter reconciliation.RoleBinding, modifier reconciliation.RoleBindingModifier) {
		options := reconciliation.ReconcileRoleBindingOptions{RoleBinding: adapter, Client: modifier, Confirm: true}
		steps = append(steps, bootstrapStep{object, func(context.Context) error {
			_, err := options.Run()
			return err
		}})
	}
	rbac, namespaces := client.RbacV1(), client.CoreV1().Namespaces()
	for _, r := range slices.Concat(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()) {
		role("cluster role "+r.Name, reconciliation.ClusterRoleRuleOwner{ClusterRole: &r},
			reconciliation.ClusterRoleModifier{Client: rbac.ClusterRoles()})
	}
	for _, b := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()) {
		binding("cluster role binding "+b.Name, reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &b},
			reconciliation.ClusterRoleBindingClientAdapter{Client: rbac.ClusterRoleBindings()})
	}
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		for _, r := range roles {
			role("role "+namespace+"/"+r.Name, reconciliation.RoleRuleOwner{Role: &r},
				reconciliation.RoleModifier{Client: rbac, NamespaceClient: namespaces})
		}
	}
	for namespace, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range bindings {
			binding("role binding "+namespace+"/"+b.Name, reconciliation.RoleBindingAdapter{RoleBinding: &b},
				reconciliation.RoleBindingClientAdapter{Client: rbac, NamespaceClient: namespaces})
		}
	}
	return steps
}
