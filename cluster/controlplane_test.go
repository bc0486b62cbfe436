package cluster_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/taskctl-dev/taskctl/cluster"
	"github.com/taskctl-dev/taskctl/cluster/embedded"
)

// TestControlPlane looks at one control plane from all sides: starting one
// takes seconds.
func TestControlPlane(t *testing.T) {
	c := start(t, cluster.Options{
		CRDDirs:       []string{"testdata/crds"},
		APIServerArgs: map[string][]string{"anonymous-auth": {"false"}},
	})
	t.Cleanup(func() { stopWithin(t, c, 3*time.Second) })
	client := clientFor(t, c.RESTConfig())

	t.Run("it reports the version that it is", func(t *testing.T) {
		version, err := client.Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if version.GitVersion != embedded.Version || version.Major != "1" || version.Minor != "37" {
			t.Errorf("its version is %v, and this is %s", version, embedded.Version)
		}
	})
	t.Run("the roles and priority classes of every cluster are there", func(t *testing.T) { testBootstrapObjects(t, client) })
	t.Run("custom resources from a folder are served", func(t *testing.T) {
		widget := `{"apiVersion":"samples.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"color":"red"}}`
		path := "/apis/samples.example.com/v1/namespaces/default/widgets"
		if err := client.RESTClient().Post().AbsPath(path).Body([]byte(widget)).Do(t.Context()).Error(); err != nil {
			t.Error(err)
		}
		wrong := strings.Replace(widget, "red", "mauve", 1)
		err := client.RESTClient().Post().AbsPath(path).Body([]byte(wrong)).Do(t.Context()).Error()
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.color") {
			t.Errorf("a wrong color: error %v, want one about spec.color", err)
		}
	})
	t.Run("other objects beside custom resources are left alone", func(t *testing.T) {
		_, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "not-installed", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("error %v, want not found", err)
		}
	})
	t.Run("users have the rights that RBAC gives them", func(t *testing.T) { testRBAC(t, c, client) })
	t.Run("tokens of service accounts work", func(t *testing.T) { testTokens(t, c, client) })
	t.Run("a token secret is filled", func(t *testing.T) { testTokenSecret(t, client) })
	t.Run("a deleted namespace goes with all that is in it", func(t *testing.T) { testNamespaceDeletion(t, client) })
	t.Run("what an object owned goes with it", func(t *testing.T) { testGarbageCollection(t, client) })
	t.Run("aggregated API servers can recognize it", func(t *testing.T) { testRequestHeader(t, client) })
	t.Run("creating a Pod warns that it stays Pending", func(t *testing.T) { testPodWarning(t, c) })
	t.Run("its kubeconfig gives the same access", func(t *testing.T) { testKubeconfig(t, c) })
	t.Run("arguments reach kube-apiserver", func(t *testing.T) {
		config := rest.AnonymousClientConfig(c.RESTConfig())
		err := clientFor(t, config).RESTClient().Get().AbsPath("/version").Do(t.Context()).Error()
		if !apierrors.IsUnauthorized(err) {
			t.Errorf("with anonymous-auth=false an anonymous request gives error %v, want unauthorized", err)
		}
	})
}

func testBootstrapObjects(t *testing.T, client *kubernetes.Clientset) {
	for _, role := range slices.Concat(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()) {
		if _, err := client.RbacV1().ClusterRoles().Get(t.Context(), role.Name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	for _, binding := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()) {
		found, err := client.RbacV1().ClusterRoleBindings().Get(t.Context(), binding.Name, metav1.GetOptions{})
		if err != nil || len(found.Subjects) != len(binding.Subjects) {
			t.Errorf("the binding %s is %v, error %v", binding.Name, found, err)
		}
	}
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		for _, role := range roles {
			if _, err := client.RbacV1().Roles(namespace).Get(t.Context(), role.Name, metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	for _, name := range []string{"system-cluster-critical", "system-node-critical"} {
		if _, err := client.SchedulingV1().PriorityClasses().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	for _, check := range []string{"rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes"} {
		if err := client.RESTClient().Get().AbsPath("/readyz/poststarthook/" + check).Do(t.Context()).Error(); err != nil {
			t.Errorf("the health check %s: %v", check, err)
		}
	}
}

func testRBAC(t *testing.T, c *cluster.ControlPlane, admin *kubernetes.Clientset) {
	config, err := c.RESTConfigFor("jane", "readers")
	if err != nil {
		t.Fatal(err)
	}
	jane := clientFor(t, config)
	if _, err := jane.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without a binding the list gives error %v, want forbidden", err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers", Namespace: "default"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
	}
	if _, err := admin.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a member of the group may read", func(ctx context.Context) (bool, error) {
		_, err := jane.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err == nil, ignore(err, apierrors.IsForbidden)
	})
	account, err := c.RESTConfigFor("system:serviceaccount:default:default")
	if err != nil {
		t.Fatal(err)
	}
	review, err := clientFor(t, account).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if groups := strings.Join(review.Status.UserInfo.Groups, " "); !strings.Contains(groups, "system:serviceaccounts:default") {
		t.Errorf("a service account has groups %s", groups)
	}
}

func testTokens(t *testing.T, c *cluster.ControlPlane, client *kubernetes.Clientset) {
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(c.RESTConfig())
	config.BearerToken = token.Status.Token
	review, err := clientFor(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if name := review.Status.UserInfo.Username; name != "system:serviceaccount:default:default" {
		t.Errorf("the token's user is %q", name)
	}
}

func testTokenSecret(t *testing.T, client *kubernetes.Clientset) {
	secrets := client.CoreV1().Secrets("default")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the secret holds a token and the authority", func(ctx context.Context) (bool, error) {
		found, err := secrets.Get(ctx, "token", metav1.GetOptions{})
		return err == nil && len(found.Data["token"]) > 0 && len(found.Data["ca.crt"]) > 0, err
	})
}

func testNamespaceDeletion(t *testing.T, client *kubernetes.Clientset) {
	namespaces := client.CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	widget := `{"apiVersion":"samples.example.com/v1","kind":"Widget","metadata":{"name":"w"}}`
	path := "/apis/samples.example.com/v1/namespaces/short/widgets"
	if err := client.RESTClient().Post().AbsPath(path).Body([]byte(widget)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace has its default service account and root certificate", func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts("short").Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return false, ignore(err, apierrors.IsNotFound)
		}
		_, err = client.CoreV1().ConfigMaps("short").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil, ignore(err, apierrors.IsNotFound)
	})
	if err := namespaces.Delete(t.Context(), "short", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, "short", metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignore(err, apierrors.IsNotFound)
	})
}

func testGarbageCollection(t *testing.T, client *kubernetes.Clientset) {
	configMaps := client.CoreV1().ConfigMaps("default")
	owner, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
	}}}
	if _, err := configMaps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := configMaps.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owned object is gone", func(ctx context.Context) (bool, error) {
		_, err := configMaps.Get(ctx, "owned", metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignore(err, apierrors.IsNotFound)
	})
}

func testRequestHeader(t *testing.T, client *kubernetes.Clientset) {
	eventually(t, "the aggregation layer's trust is published", func(ctx context.Context) (bool, error) {
		found, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
		if err != nil {
			return false, ignore(err, apierrors.IsNotFound)
		}
		var names []string
		if err := json.Unmarshal([]byte(found.Data["requestheader-allowed-names"]), &names); err != nil {
			return false, err
		}
		return len(names) == 1 && strings.Contains(found.Data["requestheader-client-ca-file"], "BEGIN CERTIFICATE") &&
			found.Data["requestheader-client-ca-file"] != found.Data["client-ca-file"], nil
	})
}

// warnings records what the API server warns of.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func testPodWarning(t *testing.T, c *cluster.ControlPlane) {
	seen := &warnings{}
	config := c.RESTConfig()
	config.WarningHandler = seen
	client := clientFor(t, config)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
	created, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.Status.Phase != corev1.PodPending {
		t.Errorf("the Pod is %s", created.Status.Phase)
	}
	if len(seen.all) != 1 || !strings.Contains(seen.all[0], "this cluster has no nodes") || !strings.Contains(seen.all[0], "pods/pod") {
		t.Errorf("warnings: %q", seen.all)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "no-pod"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(seen.all) != 1 {
		t.Errorf("after a ConfigMap: warnings: %q", seen.all)
	}
}

func testKubeconfig(t *testing.T, c *cluster.ControlPlane) {
	content, err := c.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	var status int
	if err := clientFor(t, config).RESTClient().Get().AbsPath("/readyz").Do(t.Context()).StatusCode(&status).Error(); err != nil || status != http.StatusOK {
		t.Errorf("/readyz answers %d, error %v", status, err)
	}
}

// eventually waits for a condition that Kubernetes fulfils a moment later.
func eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, condition); err != nil {
		t.Errorf("%s: not within 30 s: %v", what, err)
	}
}

// ignore is nil for an error that is expected until a condition holds.
func ignore(err error, expected func(error) bool) error {
	if err == nil || expected(err) {
		return nil
	}
	return err
}
