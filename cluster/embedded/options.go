package embedded

import (
	"fmt"
	"net"

	"k8s.io/apiserver/pkg/server/options"
	kubeoptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"

	"github.com/taskctl-dev/taskctl/internal/pki"
)

const (
	// serviceClusterIPRange is kubeadm's. [pki.KubernetesServiceIP] is its first.
	serviceClusterIPRange = "10.96.0.0/16"
	// serviceAccountIssuer is what tokens name as their issuer; kubeadm's too.
	serviceAccountIssuer = "https://kubernetes.default.svc.cluster.local"
)

// options are kube-apiserver's defaults, what an embedded server needs, and
// then the user's arguments.
func (s *APIServer) options() (*kubeoptions.ServerRunOptions, error) {
	address, ok := s.Listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("the listener's address %s is not a TCP address", s.Listener.Addr())
	}
	if !address.IP.IsLoopback() {
		return nil, fmt.Errorf("the listener's address %s is not a loopback address", address)
	}
	o := kubeoptions.NewServerRunOptions()
	if err := applyArgs(o, s.Args); err != nil {
		return nil, err
	}

	o.SecureServing.Listener = s.Listener
	o.SecureServing.BindAddress = address.IP
	o.SecureServing.BindPort = address.Port
	// Without these it looks for a default route, and refuses to start when
	// there is none.
	o.SecureServing.ExternalAddress = address.IP
	o.GenericServerRunOptions.AdvertiseAddress = address.IP
	// Endpoints of the service kubernetes.default can't be a loopback address.
	o.EndpointReconcilerType = "none"
	o.ServiceClusterIPRanges = serviceClusterIPRange
	o.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = watchTerminationGracePeriod

	transport := &o.Etcd.StorageConfig.Transport
	transport.ServerList = []string{s.Storage.URL}
	transport.TrustedCAFile = s.Storage.CAFile
	transport.CertFile = s.Storage.CertFile
	transport.KeyFile = s.Storage.KeyFile

	// Without nodes there is nothing that node authorization would apply to.
	o.Authorization.Modes = []string{modes.ModeRBAC}
	s.certificates(o)
	registerPodWarning(o.Admission.GenericAdmission)

	// Feature gates take effect now; they belong to the whole process.
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("apiServerArgs: feature-gates: %w", err)
	}
	return o, nil
}

// certificates names the files of the PKI. The API server watches them, and
// follows their renewal by itself.
func (s *APIServer) certificates(o *kubeoptions.ServerRunOptions) {
	serving := s.PKI.ServingFiles(pki.APIServer)
	o.SecureServing.ServerCert.CertKey = options.CertKey{CertFile: serving.Cert, KeyFile: serving.Key}
	o.Authentication.ClientCert.ClientCA = s.PKI.CAFile()

	// How aggregated API servers recognize this server, and which headers
	// tell them the user. UID headers have no default.
	proxy := s.PKI.ClientFiles(pki.FrontProxy)
	o.ProxyClientCertFile, o.ProxyClientKeyFile = proxy.Cert, proxy.Key
	header := o.Authentication.RequestHeader
	header.ClientCAFile = s.PKI.FrontProxyCAFile()
	header.AllowedNames = []string{pki.FrontProxyName}
	header.UsernameHeaders = []string{"X-Remote-User"}
	header.UIDHeaders = []string{"X-Remote-Uid"}
	header.GroupHeaders = []string{"X-Remote-Group"}
	header.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}

	o.ServiceAccountSigningKeyFile = s.PKI.ServiceAccountKeyFile()
	accounts := o.Authentication.ServiceAccounts
	accounts.KeyFiles = []string{s.PKI.ServiceAccountKeyFile()}
	if len(accounts.Issuers) == 0 {
		accounts.Issuers = []string{serviceAccountIssuer}
	}
}
