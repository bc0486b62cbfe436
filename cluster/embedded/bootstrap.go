package embedded

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
)

// Two of kube-apiserver's post-start hooks make the objects that every cluster
// has, the roles of RBAC and the system's priority classes. Both sleep for a
// second before they look at anything, and /readyz waits for them. They are
// replaced here by hooks of the same names that make the same objects, at once
// and side by side: it saves a second of every start, and more of the first.
const (
	rolesHook           = rbacrest.PostStartHookName
	priorityClassesHook = schedulingrest.PostStartHookName

	bootstrapRetry    = 100 * time.Millisecond
	bootstrapLimit    = 30 * time.Second // Kubernetes' own
	bootstrapParallel = 16
)

// withoutBootstrapHooks switches Kubernetes' own hooks off.
func withoutBootstrapHooks(config *app.Config) {
	// The three servers share the set of disabled hooks, and the outermost one
	// is to get ours.
	generic := config.KubeAPIs.ControlPlane.Generic
	generic.DisabledPostStartHooks = generic.DisabledPostStartHooks.Union(sets.NewString(rolesHook, priorityClassesHook))
}

func addBootstrapHooks(server *aggregatorapiserver.APIAggregator) error {
	for name, steps := range map[string]func(kubernetes.Interface) []bootstrapStep{
		rolesHook:           roleSteps,
		priorityClassesHook: priorityClassSteps,
	} {
		hook := func(hook genericapiserver.PostStartHookContext) error {
			client, err := kubernetes.NewForConfig(hook.LoopbackClientConfig)
			if err != nil {
				return err
			}
			// An error ends the API server, as Kubernetes' own would.
			return bootstrap(hook, name, steps(client))
		}
		if err := server.GenericAPIServer.AddPostStartHook(name, hook); err != nil {
			return err
		}
	}
	return nil
}

// bootstrapStep makes one object, or brings it up to date. It may be repeated.
type bootstrapStep struct {
	object string
	run    func(context.Context) error
}

// bootstrap runs all steps, and those that failed again until the limit.
func bootstrap(ctx context.Context, name string, steps []bootstrapStep) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, bootstrapRetry, bootstrapLimit, true, func(ctx context.Context) (bool, error) {
		var group errgroup.Group
		group.SetLimit(bootstrapParallel)
		for _, step := range steps {
			group.Go(func() error {
				if err := step.run(ctx); err != nil {
					return fmt.Errorf("%s: %w", step.object, err)
				}
				return nil
			})
		}
		if last = group.Wait(); last != nil {
			klog.InfoS("Bootstrap objects could not be made; trying again", "hook", name, "err", last)
		}
		return last == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: not within %s: %w", name, bootstrapLimit, last)
	}
	return nil // done, or the server stops
}

func priorityClassSteps(client kubernetes.Interface) []bootstrapStep {
	var steps []bootstrapStep
	for _, class := range schedulingv1.SystemPriorityClasses() {
		steps = append(steps, bootstrapStep{"priority class " + class.Name, func(ctx context.Context) error {
			_, err := client.SchedulingV1().PriorityClasses().Get(ctx, class.Name, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return err
			}
			_, err = client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		}})
	}
	return steps
}
