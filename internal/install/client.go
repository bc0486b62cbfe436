package install

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// client is one connection to a cluster, for the time of one exported function.
type client struct {
	config   *rest.Config
	http     *http.Client
	dynamic  dynamic.Interface
	warnings *warnings
}

// connect opens a client without a rate limit: the API server's fairness
// protects it. Whoever calls it calls close.
func connect(config *rest.Config) (*client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	if config.UserAgent == "" {
		config.UserAgent = FieldManager
	}
	seen := &warnings{}
	config.WarningHandlerWithContext = seen
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("setting up a client of the API server: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("setting up a client of the API server: %w", err)
	}
	return &client{config: config, http: httpClient, dynamic: dynamicClient, warnings: seen}, nil
}

func (c *client) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// resource is the client for the place where object lives.
func (c *client) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	where, err := targetOf(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if where.namespaced {
		return c.dynamic.Resource(where.resource).Namespace(object.GetNamespace()), nil
	}
	return c.dynamic.Resource(where.resource), nil
}

// apply makes object's fields ours, whoever owned them.
func (c *client) apply(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := c.resource(object)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	if _, err := resource.Apply(ctx, object.GetName(), object, options); err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
