package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"github.com/taskctl-dev/taskctl/internal/pki"
)

// controllerShutdownTimeout is how long controllers may take to stop.
const controllerShutdownTimeout = 2 * time.Second

// ControllerManager is the useful part of kube-controller-manager, to be run.
// Fill in the fields, then call Run.
type ControllerManager struct {
	// Host is the API server, https://ADDRESS:PORT. It must be ready.
	Host string
	// PKI has the controller manager's identity and the keys it signs with.
	PKI *pki.PKI
	// Log takes the controllers' log, text; default none. What they log
	// through klog's global functions goes where [CaptureProcess] says.
	Log io.Writer
}

// Run starts the controllers, calls ready when all of them run and their
// shared informers have synced, and stops them when ctx ends. The API server
// must keep answering until Run has returned.
//
// There is no leader election: losing the lease would end the process, and
// there is nobody else.
func (m *ControllerManager) Run(ctx context.Context, ready func()) error {
	log := m.Log
	if log == nil {
		log = io.Discard
	}
	ctx = klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log))))
	c, err := m.config(ctx)
	if err != nil {
		return fmt.Errorf("kube-controller-manager did not start: %w", err)
	}
	if err := run(ctx, c, ready); err != nil {
		return fmt.Errorf("kube-controller-manager failed: %w", err)
	}
	return nil
}

func (m *ControllerManager) config(ctx context.Context) (*config.CompletedConfig, error) {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	o.Master = m.Host
	o.Generic.ClientConnection.QPS = -1
	o.Generic.LeaderElection.LeaderElect = false
	o.Generic.Controllers = controllers()
	o.ControllerShutdownTimeout = controllerShutdownTimeout
	// No port of its own.
	o.SecureServing.BindPort = 0
	// Each controller has its own service account, and by that its own rights.
	o.KubeCloudShared.UseServiceAccountCredentials = true
	o.SAController.ServiceAccountKeyFile = m.PKI.ServiceAccountKeyFile()
	o.SAController.RootCAFile = m.PKI.CAFile()
	authority := m.PKI.CAFiles()
	o.CSRSigningController.ClusterSigningCertFile = authority.Cert
	o.CSRSigningController.ClusterSigningKeyFile = authority.Key

	c, err := o.Config(ctx, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err != nil {
		return nil, err
	}
	// In place of the configuration made from Master, which has no identity.
	c.Kubeconfig = m.PKI.RESTConfig(m.Host, pki.ControllerManager)
	c.Kubeconfig.DisableCompression = true
	c.Kubeconfig.ContentType = "application/vnd.kubernetes.protobuf"
	c.Kubeconfig.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	// Controllers need not be told that their Pods won't run.
	c.Kubeconfig.WarningHandler = rest.NoWarnings{}
	c.Client, err = kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(c.Kubeconfig), options.KubeControllerManagerUserAgent))
	if err != nil {
		return nil, err
	}
	return c.Complete(), nil
}

// errShutdown tells that controllers went on after their time was up.
var errShutdown = errors.New("controllers were still running after " + controllerShutdownTimeout.String())
