package install_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/taskctl-dev/taskctl/internal/install"
	"github.com/taskctl-dev/taskctl/operator"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
	"github.com/taskctl-dev/taskctl/test/harness"
)

// limit bounds everything that a test waits for.
const limit = time.Minute

const group = "search.task.example.example.com"

// TestInstall runs against a real API server that has the manifests and no
// registrations. The subtests build on one another.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what needs an API server")
	}
	appliance := harness.Start(t, "--without", "operator,webhooks,aggregator,registration")
	s := &suite{appliance: appliance, config: appliance.REST()}
	var err error
	if s.client, err = dynamic.NewForConfig(s.config); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		test func(*testing.T, *suite)
	}{
		{"applying again changes nothing", appliesAgain},
		{"webhooks are registered and called", registersWebhooks},
		{"the aggregated API is registered and answers as this run", registersAggregator},
		{"another run's answer does not count", waitsForThisRun},
		{"what is registered is taken out again", unregisters},
		{"stale registrations are removed, others stay", removesStale},
		{"a server that does not answer is named in the error", namesSilentServer},
	} {
		t.Run(step.name, func(t *testing.T) { step.test(t, s) })
	}
}

type suite struct {
	appliance *harness.Appliance
	config    *rest.Config
	client    dynamic.Interface
}

func (s *suite) context(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func (s *suite) resource(group, resource string) dynamic.NamespaceableResourceInterface {
	return s.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource})
}

func (s *suite) apiServices() dynamic.NamespaceableResourceInterface {
	return s.resource("apiregistration.k8s.io", "apiservices")
}

func (s *suite) mutatingWebhooks() dynamic.NamespaceableResourceInterface {
	return s.resource("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
}

// certificate is one of the appliance's serving certificates.
func (s *suite) certificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	base := filepath.Join(s.appliance.DataDir, "pki", name)
	certificate, err := tls.LoadX509KeyPair(base+".crt", base+".key")
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func appliesAgain(t *testing.T, s *suite) {
	ctx := s.context(t)
	definitions := s.resource("apiextensions.k8s.io", "customresourcedefinitions")
	before, err := definitions.Get(ctx, "tasks.example.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := install.Apply(ctx, s.config); err != nil {
		t.Fatal(err)
	}
	t.Logf("it took %s", time.Since(start))
	after, err := definitions.Get(ctx, before.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if before.GetResourceVersion() != after.GetResourceVersion() {
		t.Error("the CustomResourceDefinition was written again")
	}
}

// startWebhooks runs the operator's webhooks and returns their URL.
func (s *suite) startWebhooks(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certificate := s.certificate(t, "webhooks-serving")
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- operator.RunWebhooks(ctx, operator.WebhookOptions{
			Listener:       listener,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
		}, func() { close(ready) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return "https://" + listener.Addr().String()
}

func registersWebhooks(t *testing.T, s *suite) {
	ctx := s.context(t)
	start := time.Now()
	err := install.Register(ctx, s.config, install.Registration{RunID: "run-1", WebhookURL: s.startWebhooks(t), WebhookCABundle: s.config.CAData})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("it took %s", time.Since(start))
	defer s.unregister(t)

	tasks := s.client.Resource(taskv1.Resource("tasks")).Namespace("default")
	task := newTask(`{"generateName":"install-"}`, `{"priority":7,"deadline":"2030-01-01T02:00:00.5+02:00"}`)
	created, err := tasks.Create(ctx, task, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if labels := created.GetLabels(); labels[taskv1.LabelPriority] != "7" || labels[taskv1.LabelDeadline] != "1893456000" {
		t.Errorf("labels are %v", labels)
	}
	if deadline, _, _ := unstructured.NestedString(created.Object, "spec", "deadline"); deadline != "2030-01-01T02:00:00.5+02:00" {
		t.Errorf("the deadline was rewritten as %s", deadline)
	}
	patch := []byte(`{"spec":{"priority":8}}`)
	patched, err := tasks.Patch(ctx, created.GetName(), "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if labels := patched.GetLabels(); labels[taskv1.LabelPriority] != "8" {
		t.Errorf("labels are %v", labels)
	}
	// What the schema refuses is refused with the field's name, although the
	// defaulting webhook sees it first.
	for field, spec := range map[string]string{
		"spec.deadline":  `{"priority":1}`,
		"spec.priority":  `{"priority":11,"deadline":"2030-01-01T00:00:00Z"}`,
		"spec.taskState": `{"priority":1,"deadline":"2030-01-01T00:00:00Z","taskState":"Done"}`,
	} {
		_, err := tasks.Create(ctx, newTask(`{"generateName":"install-"}`, spec), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), field+":") {
			t.Errorf("want a refusal that names %s, got %v", field, err)
		}
	}
	if _, err := tasks.Create(ctx, newTask(`{"generateName":"install-"}`, `{"priority":1,"deadline":"tomorrow"}`), metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.deadline:") {
		t.Errorf("want a refusal that names spec.deadline, got %v", err)
	}
}

func newTask(metadata, spec string) *unstructured.Unstructured {
	task := &unstructured.Unstructured{}
	content := fmt.Sprintf(`{"apiVersion":"example.example.com/v1","kind":"Task","metadata":%s,"spec":%s}`, metadata, spec)
	if err := json.Unmarshal([]byte(content), &task.Object); err != nil {
		panic(err) // the test itself is wrong
	}
	return task
}

// startAggregator serves what Register looks at of an aggregated API: discovery
// and combinedtasks, under a run's id.
func (s *suite) startAggregator(t *testing.T, runID string) int32 {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(path string, body any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set(install.RunIDHeader, runID)
			_ = json.NewEncoder(w).Encode(body) // the client sees a broken answer
		})
	}
	answer("/apis/"+group+"/v1", metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group + "/v1"})
	answer("/apis/"+group+"/v1/combinedtasks", map[string]any{"kind": "CombinedTaskList", "apiVersion": group + "/v1", "items": []any{}})
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{s.certificate(t, "aggregator-serving")}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return int32(server.Listener.Addr().(*net.TCPAddr).Port)
}

func registersAggregator(t *testing.T, s *suite) {
	ctx := s.context(t)
	registration := install.Registration{RunID: "run-2", AggregatorPort: s.startAggregator(t, "run-2"), AggregatorCABundle: s.config.CAData}
	start := time.Now()
	if err := install.Register(ctx, s.config, registration); err != nil {
		t.Fatal(err)
	}
	t.Logf("it took %s", time.Since(start))
	current, err := s.apiServices().Get(ctx, "v1."+group, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if current.GetAnnotations()[install.RunIDAnnotation] != "run-2" {
		t.Errorf("annotations are %v", current.GetAnnotations())
	}
	// Left registered, as a crash leaves it, for the next step.
}

func waitsForThisRun(t *testing.T, s *suite) {
	ctx := s.context(t)
	port := s.startAggregator(t, "run-3")
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := install.Register(short, s.config, install.Registration{RunID: "run-4", AggregatorPort: port, AggregatorCABundle: s.config.CAData})
	if err == nil || !strings.Contains(err.Error(), "run-3") {
		t.Errorf("error is %v", err)
	}
	if err := install.WaitAvailable(ctx, s.config, "run-3"); err != nil {
		t.Error(err)
	}
}

func (s *suite) unregister(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := install.Unregister(ctx, s.config); err != nil {
		t.Error(err)
	}
}

func unregisters(t *testing.T, s *suite) {
	s.unregister(t)
	s.unregister(t) // once more is no error
	if _, err := s.apiServices().Get(s.context(t), "v1."+group, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the APIService: %v", err)
	}
}

func removesStale(t *testing.T, s *suite) {
	ctx := s.context(t)
	webhook := func(name string, labels map[string]string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
			"metadata": map[string]any{"name": name},
		}}
		object.SetLabels(labels)
		return object
	}
	for _, object := range []*unstructured.Unstructured{
		webhook("stale", map[string]string{install.ManagedByLabel: install.ManagedByValue}),
		webhook("foreign", map[string]string{install.ManagedByLabel: "somebody-else"}),
	} {
		if _, err := s.mutatingWebhooks().Create(ctx, object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := install.RemoveStale(ctx, s.config); err != nil {
		t.Fatal(err)
	}
	if _, err := s.mutatingWebhooks().Get(ctx, "stale", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the stale one: %v", err)
	}
	if err := s.mutatingWebhooks().Delete(ctx, "foreign", metav1.DeleteOptions{}); err != nil {
		t.Errorf("the foreign one: %v", err)
	}
}

func namesSilentServer(t *testing.T, s *suite) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	defer s.unregister(t)
	err := install.Register(ctx, s.config, install.Registration{RunID: "run-5", WebhookURL: "https://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "webhook") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error is %v", err)
	}
}
