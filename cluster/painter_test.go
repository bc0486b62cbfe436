package cluster_test

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// painter is a controller to be tested: it paints Widgets in their color.
type painter struct {
	client.Client
}

func (p *painter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := newWidget()
	if err := p.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	color, _, _ := unstructured.NestedString(widget.Object, "spec", "color")
	painted, _, _ := unstructured.NestedString(widget.Object, "status", "painted")
	if painted == color {
		return ctrl.Result{}, nil
	}
	if err := unstructured.SetNestedField(widget.Object, color, "status", "painted"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, p.Status().Update(ctx, widget)
}

func newWidget() *unstructured.Unstructured {
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(schema.GroupVersionKind{Group: "samples.example.com", Version: "v1", Kind: "Widget"})
	return widget
}

// runPainter is what the operator's main function would call. It runs until
// ctx ends.
func runPainter(ctx context.Context, kubeconfig *rest.Config) error {
	skipNameValidation := true // the tests run it more than once in their process
	manager, err := ctrl.NewManager(kubeconfig, ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skipNameValidation},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).Named("painter").For(newWidget()).Complete(&painter{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}
