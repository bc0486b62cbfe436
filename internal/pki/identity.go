package pki

import (
	"crypto/x509/pkix"
	"net"
)

// Namespace is where the operator's and the aggregator's service accounts and
// services live.
const Namespace = "taskctl-system"

// Names of the services that the serving certificates are made for. The API
// server checks the name SERVICE.NAMESPACE.svc whatever address it dials.
const (
	AggregatorService = "taskctl-aggregator"
	WebhooksService   = "taskctl-webhooks"
)

// KubernetesServiceIP is the address of the service kubernetes.default, the
// first of the embedded cluster's service range.
const KubernetesServiceIP = "10.96.0.1"

// Client is a client identity. Its string is the name of its files.
type Client string

// The client identities. A certificate for a service account names the user
// and the groups that the API server would give to that account's token, so
// that the same RBAC rules hold here and inside a real cluster.
const (
	// Admin is member of system:masters, which no RBAC rule restricts. It is
	// for the kubeconfig and for the supervisor's own installation step.
	Admin Client = "admin"
	// ControllerManager is kube-controller-manager.
	ControllerManager Client = "controller-manager"
	// FrontProxy is how kube-apiserver identifies itself to aggregated API
	// servers; it is signed by the front-proxy authority.
	FrontProxy Client = "front-proxy-client"
	// Operator is the service account taskctl-operator.
	Operator Client = "operator"
	// Aggregator is the service account taskctl-aggregator.
	Aggregator Client = "aggregator"
)

// FrontProxyName is the common name of [FrontProxy]: the only one that
// requestheader-allowed-names has to hold.
const FrontProxyName = "front-proxy-client"

// Serving is a server. Its string is the name of its files.
type Serving string

// The servers.
const (
	APIServer         Serving = "apiserver"
	AggregatorServing Serving = "aggregator-serving"
	WebhooksServing   Serving = "webhooks-serving"
)

// subjects are the client identities' names and groups.
func subjects() map[Client]pkix.Name {
	return map[Client]pkix.Name{
		Admin:             {CommonName: "taskctl-admin", Organization: []string{"system:masters"}},
		ControllerManager: {CommonName: "system:kube-controller-manager"},
		FrontProxy:        {CommonName: FrontProxyName},
		Operator:          serviceAccount("taskctl-operator"),
		Aggregator:        serviceAccount("taskctl-aggregator"),
	}
}

// serviceAccount is the subject whose user and groups are those of a service
// account (k8s.io/apiserver/pkg/authentication/serviceaccount).
func serviceAccount(name string) pkix.Name {
	return pkix.Name{
		CommonName:   "system:serviceaccount:" + Namespace + ":" + name,
		Organization: []string{"system:serviceaccounts", "system:serviceaccounts:" + Namespace},
	}
}

// servingNames are the DNS names and IP addresses of each server.
func servingNames() map[Serving][]string {
	return map[Serving][]string{
		APIServer: append(serviceNames("kubernetes", "default"), "kubernetes", KubernetesServiceIP),
		// The aggregation layer and the webhook client check the service's name.
		AggregatorServing: serviceNames(AggregatorService, Namespace),
		WebhooksServing:   serviceNames(WebhooksService, Namespace),
	}
}

// serviceNames are the names of a service, and those of this machine.
func serviceNames(service, namespace string) []string {
	name := service + "." + namespace
	return []string{name + ".svc", name, name + ".svc.cluster.local", "localhost", "127.0.0.1", "::1"}
}

// splitNames separates IP addresses from DNS names.
func splitNames(names []string) (dns []string, ips []net.IP) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
			continue
		}
		dns = append(dns, name)
	}
	return dns, ips
}
