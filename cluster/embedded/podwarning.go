package embedded

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/warning"
)

// podWarningPlugin is the name of the admission plugin; it can be switched off
// by disable-admission-plugins.
const podWarningPlugin = "TaskctlPodWarning"

func registerPodWarning(o *options.AdmissionOptions) {
	o.Plugins.Register(podWarningPlugin, func(io.Reader) (admission.Interface, error) { return podWarning{}, nil })
	o.RecommendedPluginOrder = append([]string{podWarningPlugin}, o.RecommendedPluginOrder...)
}

// podWarning tells whoever creates a Pod, or what makes Pods, that it will
// wait for good. It refuses nothing.
type podWarning struct{}

var _ admission.ValidationInterface = podWarning{}

// Handles implements [admission.Interface].
func (podWarning) Handles(operation admission.Operation) bool { return operation == admission.Create }

// Validate implements [admission.ValidationInterface].
func (podWarning) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() == "" && makesPods(a.GetResource().GroupResource()) {
		warning.AddWarning(ctx, "", fmt.Sprintf(
			"this cluster has no nodes: Pods of %s/%s stay Pending (taskctl up --cluster kind runs them)",
			a.GetResource().Resource, a.GetName()))
	}
	return nil
}

func makesPods(resource schema.GroupResource) bool {
	switch resource.Group {
	case "":
		return resource.Resource == "pods" || resource.Resource == "replicationcontrollers"
	case "apps":
		switch resource.Resource {
		case "deployments", "replicasets", "statefulsets", "daemonsets":
			return true
		}
	case "batch":
		return resource.Resource == "jobs" || resource.Resource == "cronjobs"
	}
	return false
}
