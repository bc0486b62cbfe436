package aggregator_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// authority signs client certificates.
type authority struct {
	certificate *x509.Certificate
	key         any
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return authority{certificate, key}
}

// authority reads one of the appliance's own.
func (c control) authority(t *testing.T, name string) authority {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.pki(name+".crt"), c.pki(name+".key"))
	must(t, err)
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	must(t, err)
	return authority{certificate, pair.PrivateKey}
}

// sign writes a client certificate and its key to files. It is valid for this
// long from now on, or was until that long ago.
func (a authority) sign(t *testing.T, commonName string, validity time.Duration) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: commonName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	must(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return certFile, keyFile
}

func testAuthentication(t *testing.T, c control) {
	s := c.run(t, c.storing(t))
	frontProxy := c.authority(t, "front-proxy-ca")
	claim := func(transport http.RoundTripper) http.RoundTripper {
		return asUser{transport, "admin", []string{"system:masters"}}
	}
	with := func(certFile, keyFile string) http.RoundTripper { return c.transport(t, certFile, keyFile) }
	for name, transport := range map[string]http.RoundTripper{
		"no credentials":                                with("", ""),
		"a made-up token":                               bearer{with("", ""), "made-up"},
		"headers without a certificate":                 claim(with("", "")),
		"a certificate of a user":                       with(c.pki("admin.crt"), c.pki("admin.key")),
		"headers with a certificate of a user":          claim(with(c.pki("admin.crt"), c.pki("admin.key"))),
		"headers with a certificate of our own":         claim(with(c.pki("aggregator.crt"), c.pki("aggregator.key"))),
		"headers with a foreign certificate":            claim(with(newAuthority(t).sign(t, "front-proxy-client", time.Hour))),
		"headers with another name of the front proxy":  claim(with(frontProxy.sign(t, "somebody", time.Hour))),
		"headers with an expired certificate":           claim(with(frontProxy.sign(t, "front-proxy-client", -time.Minute))),
		"the front proxy's certificate without headers": with(c.pki("front-proxy-client.crt"), c.pki("front-proxy-client.key")),
	} {
		for _, path := range []string{combinedtasks, combinedtasks + "?watch=1&timeoutSeconds=1", in("default") + "/x", clusterTasksPath, clusterTasksPath + "/x/graph", details("", "x"), "/apis", "/openapi/v2", "/metrics"} {
			got := s.get(t, transport, path)
			if err := expectCode(name+" at "+path, got, 401, 403); err != nil {
				t.Error(err)
			}
			if got.status.Reason != metav1.StatusReasonUnauthorized && got.status.Reason != metav1.StatusReasonForbidden {
				t.Errorf("%s at %s: %+v", name, path, got.status)
			}
		}
	}
	if err := expectCode("a probe without credentials", s.get(t, with("", ""), "/readyz"), 200); err != nil {
		t.Error(err)
	}
	if err := expectCode("the front proxy", s.get(t, c.asAdmin(t), combinedtasks), 200); err != nil {
		t.Error(err)
	}
	impersonating := header{c.proxied(t, "nobody", "system:authenticated"), "Impersonate-User", "admin"}
	if err := expectCode("impersonation without the right to", s.get(t, impersonating, combinedtasks), 403); err != nil {
		t.Error(err)
	}
}

type header struct {
	next        http.RoundTripper
	name, value string
}

// RoundTrip implements http.RoundTripper.
func (h header) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set(h.name, h.value)
	return h.next.RoundTrip(request)
}

type bearer struct {
	next  http.RoundTripper
	token string
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	return header{b.next, "Authorization", "Bearer " + b.token}.RoundTrip(request)
}

// testFrontProxyRotation publishes one more CA, as in a rotation, and checks
// that a certificate of it is accepted without a restart.
func testFrontProxyRotation(t *testing.T, c control) {
	s := c.run(t, c.options(t))
	rotated := newAuthority(t)
	certFile, keyFile := rotated.sign(t, "front-proxy-client", time.Hour)
	proxy := asUser{c.transport(t, certFile, keyFile), "admin", []string{"system:masters"}}
	if err := expectCode("before", s.get(t, proxy, combinedtasks), 401); err != nil {
		t.Fatal(err)
	}
	maps := c.admin.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	published, err := maps.Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	must(t, err)
	published.Data["requestheader-client-ca-file"] += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rotated.certificate.Raw}))
	_, err = maps.Update(t.Context(), published, metav1.UpdateOptions{})
	must(t, err)
	eventually(t, "the rotated front proxy is recognised", func() error {
		return expectCode("after", s.get(t, proxy, combinedtasks), 200)
	})
	if err := expectCode("the former one", s.get(t, c.asAdmin(t), combinedtasks), 200); err != nil {
		t.Error(err)
	}
}

func testServingRotation(t *testing.T, c control) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	install := func(from string) {
		for to, ext := range map[string]string{certFile: ".crt", keyFile: ".key"} {
			content, err := os.ReadFile(c.pki(from + ext))
			must(t, err)
			must(t, os.WriteFile(to+".new", content, 0o600))
			must(t, os.Rename(to+".new", to))
		}
	}
	install("aggregator-serving")
	options := c.options(t)
	options.CertFile, options.KeyFile = certFile, keyFile
	s := c.run(t, options)
	served := func() string {
		connection, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true})
		must(t, err)
		defer connection.Close()
		return strings.Join(connection.ConnectionState().PeerCertificates[0].DNSNames, " ")
	}
	if got := served(); !strings.Contains(got, "taskctl-aggregator") {
		t.Fatalf("served at first: %s", got)
	}
	install("webhooks-serving") // any other one will do
	eventually(t, "the renewed certificate is served", func() error {
		if got := served(); !strings.Contains(got, "taskctl-webhooks") {
			return fmt.Errorf("served is %s", got)
		}
		return nil
	})
}

// grant binds rules to a user in a namespace ("" for the cluster).
func (c control) grant(t *testing.T, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{GenerateName: "aggregator-test-", Namespace: namespace}
	subject := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	rbac := c.admin.RbacV1()
	if namespace == "" {
		role, err := rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		must(t, err)
		_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}}, metav1.CreateOptions{})
		must(t, err)
		return
	}
	role, err := rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}}, metav1.CreateOptions{})
	must(t, err)
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func testRights(t *testing.T, c control) {
	s := c.run(t, c.options(t))
	namespace := c.namespace(t)
	task := c.createTask(t, namespace, "x", 1)
	combined := rule("search.task.example.example.com", "combinedtasks", "get", "list", "watch")
	tasks := rule("example.example.com", "tasks", "get", "list", "watch")
	events := rule("", "events", "list", "watch")
	named := tasks
	named.ResourceNames = []string{"x"}

	c.grant(t, "both", namespace, combined, tasks, events)
	c.grant(t, "only-tasks", namespace, combined, tasks)
	c.grant(t, "only-events", namespace, combined, events)
	c.grant(t, "only-halves", namespace, tasks, events)
	c.grant(t, "no-watch", namespace, combined, rule("example.example.com", "tasks", "get", "list"), events)
	c.grant(t, "named", namespace, combined, named, events)
	c.grant(t, "everywhere", "", combined, tasks, events)

	get, list, watch := in(namespace)+"/x", in(namespace), in(namespace)+"?watch=1&timeoutSeconds=1"
	one := "?fieldSelector=metadata.name%3Dx"
	all := combinedtasks
	for _, test := range []struct {
		user  string
		paths map[string]int
	}{
		{"both", map[string]int{get: 200, list: 200, watch: 200, all: 403, in("default"): 403}},
		{"only-tasks", map[string]int{get: 403, list: 403, watch: 403}},
		{"only-events", map[string]int{get: 403, list: 403, watch: 403}},
		{"only-halves", map[string]int{get: 403, list: 403, watch: 403}},
		{"no-watch", map[string]int{get: 200, list: 200, watch: 403}},
		{"named", map[string]int{get: 200, in(namespace) + "/y": 403, list: 403, list + one: 200}},
		{"everywhere", map[string]int{get: 200, list: 200, watch: 200, all: 200}},
		{"nobody", map[string]int{get: 403, list: 403, watch: 403, all: 403}},
	} {
		transport := c.proxied(t, test.user, "system:authenticated")
		for path, code := range test.paths {
			eventually(t, "the API server knows the rights", func() error {
				return expectCode(test.user+" at "+path, s.get(t, transport, path), code)
			})
		}
	}
	if got := s.get(t, c.proxied(t, "only-tasks"), get); !strings.Contains(got.status.Message, `cannot list resource "events"`) {
		t.Errorf("the error does not say what is missing: %s", got.status.Message)
	}
	if got := s.get(t, c.proxied(t, "both"), get); !strings.Contains(got.body, string(task.UID)) {
		t.Errorf("got %s", got.body)
	}
}

func testTokens(t *testing.T, c control) {
	s := c.run(t, c.options(t))
	namespace := c.namespace(t)
	accounts := c.admin.CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	must(t, err)
	token, err := accounts.CreateToken(t.Context(), "reader", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	transport := bearer{c.transport(t, "", ""), token.Status.Token}
	if err := expectCode("without rights", s.get(t, transport, in(namespace)), 403); err != nil {
		t.Error(err)
	}
	// The role view has both halves, and combinedtasks by aggregation.
	_, err = c.admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"}},
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "a viewer may read", func() error {
		return expectCode("with the role view", s.get(t, transport, in(namespace)), 200)
	})
}

// testOwnRights checks with the aggregator's own identity that it may do
// nothing that it does not need.
func testOwnRights(t *testing.T, c control) {
	client := kubernetes.NewForConfigOrDie(c.identity(t, "aggregator"))
	ctx := t.Context()
	_, secrets := client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
	_, namespaces := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	_, configMaps := client.CoreV1().ConfigMaps("taskctl-system").List(ctx, metav1.ListOptions{})
	_, create := client.CoreV1().ConfigMaps("taskctl-system").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{})
	deletion := client.CoreV1().ConfigMaps("taskctl-system").Delete(ctx, "taskctl-aggregator-sequence", metav1.DeleteOptions{})
	event := client.CoreV1().Events("default").Delete(ctx, "x", metav1.DeleteOptions{})
	for what, err := range map[string]error{
		"list Secrets": secrets, "list Namespaces": namespaces, "list ConfigMaps": configMaps,
		"create a ConfigMap": create, "delete its ConfigMap": deletion, "delete an Event": event,
	} {
		if err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: got %v, want that it is forbidden", what, err)
		}
	}
}
