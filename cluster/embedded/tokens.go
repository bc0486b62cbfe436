package embedded

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// tokenController fills Secrets of type kubernetes.io/service-account-token.
// kube-controller-manager builds its own apart from the other controllers,
// because this one acts with the controller manager's own rights, and does not
// export it.
type tokenController struct {
	controller *serviceaccountcontroller.TokensController
	workers    int
}

var _ app.Controller = &tokenController{}

func newTokenController(ctx context.Context, c app.ControllerContext, root clientbuilder.ControllerClientBuilder) (*tokenController, error) {
	options := c.ComponentConfig.SAController
	key, err := keyutil.PrivateKeyFromFile(options.ServiceAccountKeyFile)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(options.RootCAFile)
	if err != nil {
		return nil, err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, fmt.Errorf("token generator: %w", err)
	}
	client, err := root.Client("tokens-controller")
	if err != nil {
		return nil, err
	}
	controller, err := serviceaccountcontroller.NewTokensController(
		klog.LoggerWithName(klog.FromContext(ctx), names.ServiceAccountTokenController),
		c.InformerFactory.Core().V1().ServiceAccounts(),
		c.InformerFactory.Core().V1().Secrets(),
		client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: authority},
	)
	if err != nil {
		return nil, err
	}
	return &tokenController{controller, int(options.ConcurrentSATokenSyncs)}, nil
}

// Name implements [app.Controller].
func (c *tokenController) Name() string { return names.ServiceAccountTokenController }

// Run implements [app.Controller].
func (c *tokenController) Run(ctx context.Context) { c.controller.Run(ctx, c.workers) }
