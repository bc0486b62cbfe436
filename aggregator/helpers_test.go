package aggregator_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/taskctl-dev/taskctl/aggregator"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
	"github.com/taskctl-dev/taskctl/test/harness"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// control is a control plane without aggregator, operator and webhooks, which
// the tests share: the aggregator itself runs in the test's process.
type control struct {
	*harness.Appliance
	admin *kubernetes.Clientset
	tasks rest.Interface
}

func newControl(t *testing.T) control {
	a := harness.Start(t, "--without", "operator,webhooks,aggregator,registration")
	config := a.REST()
	tasks, err := aggregator.TaskClient(config)
	must(t, err)
	return control{Appliance: a, admin: kubernetes.NewForConfigOrDie(config), tasks: tasks}
}

func (c control) pki(name string) string { return filepath.Join(c.DataDir, "pki", name) }

// identity is a client configuration of one of the appliance's identities. It
// holds the certificate itself: for one in a file, client-go would start a
// goroutine that never ends.
func (c control) identity(t *testing.T, name string) *rest.Config {
	t.Helper()
	config := c.Identity(name)
	must(t, rest.LoadTLSFiles(config))
	config.CertFile, config.KeyFile, config.CAFile = "", "", ""
	return config
}

func (c control) options(t *testing.T) aggregator.Options {
	t.Helper()
	return aggregator.Options{
		Config:   c.identity(t, "aggregator"),
		CertFile: c.pki("aggregator-serving.crt"),
		KeyFile:  c.pki("aggregator-serving.key"),
		RunID:    "test-run",
		Listen: func(context.Context) (net.Listener, error) {
			return net.Listen("tcp", "127.0.0.1:0")
		},
	}
}

// server is one run of the aggregator.
type server struct {
	control
	address string
	stop    func() time.Duration // stops it and tells how long that took
}

// run runs the aggregator until the test ends or stop is called.
func (c control) run(t *testing.T, options aggregator.Options) *server {
	t.Helper()
	s := &server{control: c}
	listen := options.Listen
	options.Listen = func(ctx context.Context) (net.Listener, error) {
		listener, err := listen(ctx)
		if err == nil {
			s.address = listener.Addr().String()
		}
		return listener, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- aggregator.Run(ctx, options, func() { close(ready) }) }()
	s.stop = func() time.Duration {
		start := time.Now()
		cancel()
		err, running := <-done
		if running && err != nil {
			t.Errorf("Run returned %v", err)
		}
		close(done)
		s.stop = func() time.Duration { return 0 }
		return time.Since(start)
	}
	t.Cleanup(func() { s.stop() })
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		t.Fatalf("Run returned before it was ready: %v", err)
	case <-time.After(patience):
		t.Fatalf("not ready within %s", patience)
	}
	return s
}

// transport makes an HTTP transport with this client certificate ("" for none)
// that trusts the serving certificate.
func (c control) transport(t *testing.T, certFile, keyFile string) *http.Transport {
	t.Helper()
	authorities := x509.NewCertPool()
	bundle, err := os.ReadFile(c.pki("ca.crt"))
	must(t, err)
	authorities.AppendCertsFromPEM(bundle)
	config := &tls.Config{RootCAs: authorities, ServerName: "taskctl-aggregator.taskctl-system.svc"}
	if certFile != "" {
		certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
		must(t, err)
		config.Certificates = []tls.Certificate{certificate}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// proxied is a transport like that of kube-apiserver's aggregation layer, on
// behalf of a user.
func (c control) proxied(t *testing.T, user string, groups ...string) http.RoundTripper {
	t.Helper()
	return asUser{c.transport(t, c.pki("front-proxy-client.crt"), c.pki("front-proxy-client.key")), user, groups}
}

type asUser struct {
	next   http.RoundTripper
	user   string
	groups []string
}

// RoundTrip implements http.RoundTripper.
func (a asUser) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("X-Remote-User", a.user)
	for _, group := range a.groups {
		request.Header.Add("X-Remote-Group", group)
	}
	return a.next.RoundTrip(request)
}

// asAdmin is a cluster administrator who comes through the aggregation layer.
func (c control) asAdmin(t *testing.T) http.RoundTripper {
	return c.proxied(t, "admin", "system:masters", "system:authenticated")
}

// answer is what a request got.
type answer struct {
	code   int
	header http.Header
	body   string
	status metav1.Status // of an error
}

const combinedtasks = "/apis/search.task.example.example.com/v1/combinedtasks"

func in(namespace string) string {
	return "/apis/search.task.example.example.com/v1/namespaces/" + namespace + "/combinedtasks"
}

func (s *server) get(t *testing.T, transport http.RoundTripper, path string) answer {
	t.Helper()
	got, err := s.tryGet(t, transport, path)
	must(t, err)
	return got
}

func (s *server) tryGet(t *testing.T, transport http.RoundTripper, path string) (answer, error) {
	t.Helper()
	client := http.Client{Transport: transport, Timeout: patience}
	response, err := client.Get("https://" + s.address + path)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	got := answer{code: response.StatusCode, header: response.Header, body: string(body)}
	if got.code >= 400 && strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(body, &got.status); err != nil {
			t.Errorf("%s: the error %d is no Status: %s", path, got.code, body)
		}
	}
	return got, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	deadline := time.After(patience)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := holds()
		if last == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s: not within %s: %v", what, patience, last)
		}
	}
}

// namespace makes a namespace of the test's own.
func (c control) namespace(t *testing.T) string {
	t.Helper()
	made, err := c.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "aggregator-"}}, metav1.CreateOptions{})
	must(t, err)
	return made.Name
}

func (c control) newTask(namespace, name string, priority int32) *taskv1.Task {
	task := &taskv1.Task{}
	task.Namespace, task.Name = namespace, name
	task.Spec = taskv1.TaskSpec{Priority: priority, Deadline: metav1.NewTime(time.Now().Add(time.Hour)), Details: "details of " + name}
	return task
}

// createTask creates a Task and returns it as the API server stored it.
func (c control) createTask(t *testing.T, namespace, name string, priority int32) *taskv1.Task {
	t.Helper()
	task := c.newTask(namespace, name, priority)
	created := &taskv1.Task{}
	must(t, c.tasks.Post().Namespace(namespace).Resource("tasks").Body(task).Do(t.Context()).Into(created))
	return created
}

func (c control) deleteTask(t *testing.T, namespace, name string) {
	t.Helper()
	must(t, c.tasks.Delete().Namespace(namespace).Resource("tasks").Name(name).Do(t.Context()).Error())
}

// createEvent creates an Event about a Task.
func (c control) createEvent(t *testing.T, task *taskv1.Task, name string) {
	t.Helper()
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: task.Namespace, Name: name, Labels: map[string]string{taskv1.LabelTaskUID: string(task.UID)}},
		InvolvedObject: corev1.ObjectReference{APIVersion: "example.example.com/v1", Kind: "Task", Namespace: task.Namespace, Name: task.Name, UID: task.UID},
		Reason:         "Tested", Message: "event " + name, Type: corev1.EventTypeNormal,
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
	}
	_, err := c.admin.CoreV1().Events(task.Namespace).Create(t.Context(), event, metav1.CreateOptions{})
	must(t, err)
}

func expectCode(what string, got answer, codes ...int) error {
	for _, code := range codes {
		if got.code == code {
			return nil
		}
	}
	return fmt.Errorf("%s: got %d, want one of %v: %s", what, got.code, codes, strings.TrimSpace(got.body))
}

// listenAgain opens a port that was just closed.
func listenAgain(address string) func(context.Context) (net.Listener, error) {
	return func(context.Context) (net.Listener, error) { return net.Listen("tcp", address) }
}
