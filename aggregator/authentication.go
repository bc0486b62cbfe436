package aggregator

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
)

const (
	// authenticationConfigMap is where kube-apiserver publishes how its
	// aggregation layer proves itself.
	authenticationConfigMap = "extension-apiserver-authentication"
	// tokenCacheTTL is how long the answer about a token is believed, as in
	// every aggregated API server.
	tokenCacheTTL = 10 * time.Second
	// reviewTimeout limits one question to the API server.
	reviewTimeout = 10 * time.Second
)

// openPaths are answered to anybody: probes have no credentials.
func openPaths() []string { return []string{"/healthz", "/livez", "/readyz"} }

// frontProxy follows what kube-apiserver publishes about its aggregation layer:
// the CA of the client certificate, the names that are allowed in it, and the
// headers that carry the user. All of it may be rotated at any time.
type frontProxy struct {
	*genericoptions.DynamicRequestHeaderController

	mu        sync.Mutex
	listeners []dynamiccertificates.Listener
}

func newFrontProxy(client kubernetes.Interface) (*frontProxy, error) {
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy",
		metav1.NamespaceSystem, authenticationConfigMap, "requestheader-client-ca-file", client)
	if err != nil {
		return nil, fmt.Errorf("follow the front-proxy CA: %w", err)
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(authenticationConfigMap, metav1.NamespaceSystem, client,
		"requestheader-username-headers",
		"requestheader-uid-headers",
		"requestheader-group-headers",
		"requestheader-extra-headers-prefix",
		"requestheader-allowed-names")
	p := &frontProxy{DynamicRequestHeaderController: &genericoptions.DynamicRequestHeaderController{
		ConfigMapCAController:              ca,
		RequestHeaderAuthRequestController: headers,
	}}
	ca.AddListener(p)
	return p, nil
}

// AddListener implements dynamiccertificates.Notifier. The controller
// underneath can't be listened to any more once it runs, and it runs before
// there is a server.
func (p *frontProxy) AddListener(listener dynamiccertificates.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners = append(p.listeners, listener)
}

// Enqueue implements dynamiccertificates.Listener: the CA has changed.
func (p *frontProxy) Enqueue() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, listener := range p.listeners {
		listener.Enqueue()
	}
}

// check tells whether a request of the aggregation layer can be recognised.
func (p *frontProxy) check() error {
	if _, known := p.VerifyOptions(); !known {
		return fmt.Errorf("the ConfigMap %s/%s has no front-proxy CA (yet)", metav1.NamespaceSystem, authenticationConfigMap)
	}
	if len(p.UsernameHeaders()) == 0 {
		return fmt.Errorf("the ConfigMap %s/%s names no user header (yet)", metav1.NamespaceSystem, authenticationConfigMap)
	}
	return nil
}

// follow keeps up with the ConfigMap until ctx ends. It appears a moment after
// the API server started, and the controllers underneath report every attempt
// before that as an error, so it is waited for first.
func (p *frontProxy) follow(ctx context.Context, client kubernetes.Interface) error {
	err := poll(ctx, func(ctx context.Context) error {
		found, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationConfigMap, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read how the aggregation layer proves itself: %w", err)
		}
		return complete(found)
	})
	// Without a run, one that ends at once for that matter, their queues would
	// be left behind.
	p.Run(ctx, 1)
	return err
}

func complete(found *corev1.ConfigMap) error {
	for _, key := range []string{"requestheader-client-ca-file", "requestheader-username-headers"} {
		if found.Data[key] == "" {
			return fmt.Errorf("the ConfigMap %s/%s has no %s: is the aggregation layer of kube-apiserver configured (--requestheader-client-ca-file)?",
				found.Namespace, found.Name, key)
		}
	}
	return nil
}

// authentication recognises the aggregation layer and, for direct calls, tokens
// that the API server knows. Client certificates of users are not accepted
// here; without credentials only probes are answered.
func authentication(proxy *frontProxy, client kubernetes.Interface) (genericapiserver.AuthenticationInfo, error) {
	headers := &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   proxy,
		UsernameHeaders:     headerrequest.StringSliceProviderFunc(proxy.UsernameHeaders),
		UIDHeaders:          headerrequest.StringSliceProviderFunc(proxy.UIDHeaders),
		GroupHeaders:        headerrequest.StringSliceProviderFunc(proxy.GroupHeaders),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(proxy.ExtraHeaderPrefixes),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(proxy.AllowedClientNames),
	}
	anonymous := &apiserverapi.AnonymousAuthConfig{Enabled: true}
	for _, path := range openPaths() {
		anonymous.Conditions = append(anonymous.Conditions, apiserverapi.AnonymousAuthCondition{Path: path})
	}
	authenticator, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                anonymous,
		TokenAccessReviewClient:  client.AuthenticationV1(),
		TokenAccessReviewTimeout: reviewTimeout,
		WebhookRetryBackoff:      genericoptions.DefaultAuthWebhookRetryBackoff(),
		CacheTTL:                 tokenCacheTTL,
		RequestHeaderConfig:      headers,
	}.New()
	if err != nil {
		return genericapiserver.AuthenticationInfo{}, fmt.Errorf("set up authentication: %w", err)
	}
	return genericapiserver.AuthenticationInfo{Authenticator: authenticator, RequestHeaderConfig: headers}, nil
}
