package cluster

import (
	"io"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/taskctl-dev/taskctl/internal/pki"
)

// RESTConfig is a client configuration of a member of system:masters, whom
// RBAC does not restrict.
func (c *ControlPlane) RESTConfig() *rest.Config {
	// The keys were made by Open, and encoding them can't fail.
	certificate, key, _ := c.pki.ClientPEM(pki.Admin)
	return c.config(certificate, key)
}

// RESTConfigFor is a client configuration of any user and groups, who may do
// what RBAC allows them. A service account, system:serviceaccount:NAMESPACE:NAME,
// gets its groups by itself.
func (c *ControlPlane) RESTConfigFor(user string, groups ...string) (*rest.Config, error) {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(account, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	certificate, key, err := c.pki.Sign(user, groups...)
	if err != nil {
		return nil, err
	}
	return c.config(certificate, key), nil
}

func (c *ControlPlane) config(certificate, key []byte) *rest.Config {
	return &rest.Config{
		Host: c.host,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.pki.CABundle(),
			CertData: certificate,
			KeyData:  key,
		},
		// The API server's priority and fairness protects it.
		QPS: -1,
	}
}

// Kubeconfig is the content of a kubeconfig file with RESTConfig's rights, for
// kubectl and programs that tests start.
func (c *ControlPlane) Kubeconfig() ([]byte, error) {
	const name = "taskctl-test"
	config := c.RESTConfig()
	kubeconfig := api.NewConfig()
	kubeconfig.Clusters[name] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	kubeconfig.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	return clientcmd.Write(*kubeconfig)
}

func writerOrDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
