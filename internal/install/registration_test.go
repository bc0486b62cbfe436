package install

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/taskctl-dev/taskctl/manifests"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func loadRegistrations(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := load(manifests.FS, "registrations")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func kinds(objects []*unstructured.Unstructured) []string {
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetKind())
	}
	slices.Sort(kinds)
	return kinds
}

func find(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind {
			return object
		}
	}
	t.Fatalf("there is no %s among %v", kind, kinds(objects))
	return nil
}

func TestEveryManifestCanBeApplied(t *testing.T) {
	objects, err := load(manifests.FS, "crds", "rbac", "policies", "registrations")
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) < 10 {
		t.Fatalf("there are only %d", len(objects))
	}
	for _, object := range objects {
		where, err := targetOf(object.GroupVersionKind())
		if err != nil {
			t.Error(err)
		}
		if object.GetName() == "" || where.namespaced != (object.GetNamespace() != "") {
			t.Errorf("%s %q has the namespace %q", object.GetKind(), object.GetName(), object.GetNamespace())
		}
	}
}

func TestRegistrationsAreMarked(t *testing.T) {
	for _, object := range loadRegistrations(t) {
		if object.GetLabels()[ManagedByLabel] != ManagedByValue {
			t.Errorf("%s %s would not be found again: it lacks the label %s", object.GetKind(), object.GetName(), ManagedByLabel)
		}
	}
}

func TestFill(t *testing.T) {
	registration := Registration{
		RunID:      "run-1",
		WebhookURL: "https://127.0.0.1:9443", WebhookCABundle: []byte("webhook authority"),
		AggregatorPort: 7443, AggregatorCABundle: []byte("aggregator authority"),
	}
	objects, err := registration.fill(loadRegistrations(t), now)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		webhooks, _, err := unstructured.NestedSlice(find(t, objects, kind).Object, "webhooks")
		if err != nil || len(webhooks) == 0 {
			t.Fatalf("%s: %v, %v", kind, webhooks, err)
		}
		for _, webhook := range webhooks {
			client := webhook.(map[string]any)["clientConfig"].(map[string]any)
			url, _ := client["url"].(string)
			if !strings.HasPrefix(url, "https://127.0.0.1:9443/") || client["service"] != nil ||
				client["caBundle"] != base64.StdEncoding.EncodeToString([]byte("webhook authority")) {
				t.Errorf("%s: clientConfig is %v", kind, client)
			}
		}
	}
	service := find(t, objects, "APIService")
	if service.GetAnnotations()[RunIDAnnotation] != "run-1" {
		t.Errorf("annotations are %v", service.GetAnnotations())
	}
	port, _, _ := unstructured.NestedInt64(service.Object, "spec", "service", "port")
	bundle, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
	if port != 7443 || bundle != base64.StdEncoding.EncodeToString([]byte("aggregator authority")) {
		t.Errorf("port %d, caBundle %q", port, bundle)
	}
	host, _, _ := unstructured.NestedString(find(t, objects, "Service").Object, "spec", "externalName")
	if host != "127.0.0.1" {
		t.Errorf("externalName is %q", host)
	}
}

func TestAnAggregatorBesideANodeIsAnEndpoint(t *testing.T) {
	registration := Registration{AggregatorHost: "172.18.0.1", AggregatorPort: 7443}
	objects, err := registration.fill(loadRegistrations(t), now)
	if err != nil {
		t.Fatal(err)
	}
	slice := find(t, objects, "EndpointSlice").Object
	endpoints, _, _ := unstructured.NestedSlice(slice, "endpoints")
	ports, _, _ := unstructured.NestedSlice(slice, "ports")
	if len(endpoints) != 1 || len(ports) != 1 {
		t.Fatalf("endpoints %v, ports %v", endpoints, ports)
	}
	addresses, _, _ := unstructured.NestedStringSlice(endpoints[0].(map[string]any), "addresses")
	if port := ports[0].(map[string]any)["port"]; !slices.Equal(addresses, []string{"172.18.0.1"}) || port != int64(7443) {
		t.Errorf("addresses %v, port %v", addresses, port)
	}
	// The API server finds the endpoint's port by the name of the Service's.
	service := find(t, objects, "Service")
	if isExternal(service) {
		t.Error("the Service has an external name")
	}
	servicePorts, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	apiService, _, _ := unstructured.NestedFieldNoCopy(find(t, objects, "APIService").Object, "spec", "service", "port")
	first := servicePorts[0].(map[string]any)
	if first["port"] != apiService || first["name"] != ports[0].(map[string]any)["name"] {
		t.Errorf("the APIService has port %v, the Service %v, the slice %v", apiService, servicePorts, ports)
	}
}

func TestRegisteringAgainChangesTheAPIService(t *testing.T) {
	registration := Registration{RunID: "run-1", AggregatorPort: 7443}
	var annotations []string
	for i := range 2 {
		objects, err := registration.fill(loadRegistrations(t), now.Add(time.Duration(i)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		annotations = append(annotations, find(t, objects, "APIService").GetAnnotations()[registeredAtAnnotation])
	}
	if annotations[0] == annotations[1] {
		t.Errorf("it is the same both times: %v", annotations)
	}
}

func TestFillLeavesOutWhatDoesNotRun(t *testing.T) {
	for name, test := range map[string]struct {
		registration Registration
		want         []string
	}{
		"nothing":                  {},
		"webhooks only":            {registration: Registration{WebhookURL: "https://127.0.0.1:1"}, want: []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}},
		"aggregator only":          {registration: Registration{AggregatorPort: 1}, want: []string{"APIService", "Service"}},
		"aggregator beside a node": {registration: Registration{AggregatorHost: "172.18.0.1", AggregatorPort: 1}, want: []string{"APIService", "EndpointSlice", "Service"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := test.registration.fill(loadRegistrations(t), now)
			if err != nil {
				t.Fatal(err)
			}
			if got := kinds(objects); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestLoadNamesTheBrokenFile(t *testing.T) {
	files := fstest.MapFS{
		"rbac/a.yaml": {Data: []byte("# only a comment\n---\nkind: Role\nmetadata: {name: a}\n---\n")},
		"rbac/b.yaml": {Data: []byte("kind: [")},
	}
	if _, err := load(files, "rbac"); err == nil || !strings.Contains(err.Error(), "rbac/b.yaml") {
		t.Errorf("error is %v", err)
	}
	delete(files, "rbac/b.yaml")
	objects, err := load(files, "rbac")
	if err != nil || len(objects) != 1 || objects[0].GetName() != "a" {
		t.Errorf("got %v, %v", objects, err)
	}
	if _, err := load(files, "elsewhere"); err == nil {
		t.Error("a missing folder is no error")
	}
}

func TestUnknownKindsAreRefused(t *testing.T) {
	objects, err := decode([]byte("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := split(objects); err == nil || !strings.Contains(err.Error(), "Job") {
		t.Errorf("error is %v", err)
	}
	if _, err := (Registration{}).fill(objects, now); err == nil || !strings.Contains(err.Error(), "Job") {
		t.Errorf("error is %v", err)
	}
}
