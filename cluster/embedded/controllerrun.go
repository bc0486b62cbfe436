package embedded

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

// run does what kube-controller-manager's own Run does, with its own parts,
// but for what that one can do only once in a process: it registers a name for
// its informers and a configz entry and gives neither back. Doing it here also
// tells when the controllers run.
func run(ctx context.Context, c *config.CompletedConfig, ready func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c.EventBroadcaster.StartStructuredLogging(0)
	c.EventBroadcaster.StartRecordingToSink(&corev1.EventSinkImpl{Interface: c.Client.CoreV1().Events("")})
	defer c.EventBroadcaster.Shutdown()

	root := clientbuilder.SimpleControllerClientBuilder{ClientConfig: c.Kubeconfig}
	controllerContext, err := newControllerContext(ctx, c, root)
	if err != nil {
		return err
	}
	descriptors := app.NewControllerDescriptors()
	// It needs root's rights, and its constructor is private: see tokenController.
	delete(descriptors, names.ServiceAccountTokenController)
	built, err := app.BuildControllers(ctx, controllerContext, descriptors, nil, noHealthChecks{})
	if err != nil {
		return fmt.Errorf("build the controllers: %w", err)
	}
	tokens, err := newTokenController(ctx, controllerContext, root)
	if err != nil {
		return fmt.Errorf("build the token controller: %w", err)
	}
	all, running := watched(append(built, tokens))

	controllerContext.InformerFactory.Start(ctx.Done())
	defer controllerContext.InformerFactory.Shutdown()
	controllerContext.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	close(controllerContext.InformersStarted)

	var readiness sync.WaitGroup
	readiness.Go(func() {
		if running.wait(ctx) && synced(ctx, controllerContext) {
			ready()
		}
	})
	// Deferred functions run from the last to the first: all stops before it
	// is waited for.
	defer readiness.Wait()
	defer stop()
	if !app.RunControllers(ctx, controllerContext, all, app.ControllerStartJitter, c.ControllerShutdownTimeout) {
		return errShutdown
	}
	return nil
}

// newControllerContext is app.CreateControllerContext without the name of the
// informers.
func newControllerContext(ctx context.Context, c *config.CompletedConfig, root clientbuilder.ControllerClientBuilder) (app.ControllerContext, error) {
	client, err := root.Client("shared-informers")
	if err != nil {
		return app.ControllerContext{}, err
	}
	metadataConfig, err := root.Config("metadata-informers")
	if err != nil {
		return app.ControllerContext{}, err
	}
	metadataClient, err := metadata.NewForConfig(metadataConfig)
	if err != nil {
		return app.ControllerContext{}, err
	}
	discovery, err := root.DiscoveryClient("controller-discovery")
	if err != nil {
		return app.ControllerContext{}, err
	}
	resync := app.ResyncPeriod(c)
	shared := informers.NewSharedInformerFactoryWithOptions(client, resync(), informers.WithTransform(dropManagedFields))
	objectMetadata := metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, resync(), metadatainformer.WithTransform(dropManagedFields))

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(discovery))
	go wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, 30*time.Second)

	controllerContext := app.ControllerContext{
		ClientBuilder: clientbuilder.NewDynamicClientBuilder(
			rest.AnonymousClientConfig(c.Kubeconfig), c.Client.CoreV1(), metav1.NamespaceSystem),
		InformerFactory:                 shared,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(shared, objectMetadata),
		ComponentConfig:                 c.ComponentConfig,
		RESTMapper:                      mapper,
		InformersStarted:                make(chan struct{}),
		ResyncPeriod:                    resync,
		ControllerManagerMetrics:        controllersmetrics.NewControllerManagerMetrics("kube-controller-manager"),
	}
	ignored := map[schema.GroupResource]struct{}{}
	for _, r := range c.ComponentConfig.GarbageCollectorController.GCIgnoredResources {
		ignored[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = struct{}{}
	}
	controllerContext.GraphBuilder = garbagecollector.NewDependencyGraphBuilder(
		ctx, metadataClient, mapper, ignored,
		controllerContext.ObjectOrMetadataInformerFactory, controllerContext.InformersStarted)
	controllersmetrics.Register()
	return controllerContext, nil
}

// dropManagedFields saves the memory of what no controller reads.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// synced waits until the controllers know the cluster's state: the shared
// informers, and the garbage collector's, which watch every kind there is.
// It returns false when ctx ended before.
func synced(ctx context.Context, c app.ControllerContext) bool {
	for _, ok := range c.InformerFactory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return false
		}
	}
	logger := klog.FromContext(ctx)
	return wait.PollUntilContextCancel(ctx, readyInterval, true, func(context.Context) (bool, error) {
		return c.GraphBuilder.IsSynced(logger), nil
	}) == nil
}
