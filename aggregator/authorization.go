package aggregator

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
)

const (
	// allowCacheTTL is how long a right that was taken away may still be
	// used, as in every aggregated API server.
	allowCacheTTL = 10 * time.Second
	// denyCacheTTL is how long somebody who was just given a right may have to
	// wait for it.
	denyCacheTTL = 2 * time.Second
)

// authorization asks the API server by SubjectAccessReview and remembers the
// answers for a short while. Probes, and cluster admins, who may do everything
// there too, are not asked about.
func authorization(client kubernetes.Interface) (authorizer.Authorizer, error) {
	open, err := path.NewAuthorizer(openPaths())
	if err != nil {
		return nil, fmt.Errorf("set up authorization: %w", err)
	}
	delegated, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             allowCacheTTL,
		DenyCacheTTL:              denyCacheTTL,
		WebhookRetryBackoff:       genericoptions.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, fmt.Errorf("set up authorization: %w", err)
	}
	all, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "cluster-admins", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		union.NamedAuthorizer{AuthorizerName: "open-paths", Authorizer: open},
		union.NamedAuthorizer{AuthorizerName: "api-server", Authorizer: delegated},
	)
	if err != nil {
		return nil, fmt.Errorf("set up authorization: %w", err)
	}
	return all, nil
}
