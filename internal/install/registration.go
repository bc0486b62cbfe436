package install

import (
	"encoding/base64"
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Registration says where the webhooks and the aggregated API of this run are.
type Registration struct {
	// RunID tells this run from every other one.
	RunID string
	// WebhookURL is scheme, host and port of the webhook server, for example
	// https://127.0.0.1:9443; the paths are in the manifests. Without it the
	// webhooks are not registered.
	WebhookURL string
	// WebhookCABundle are the authorities, in PEM, of its certificate.
	WebhookCABundle []byte
	// AggregatorHost is the IP address of the aggregated API server, as the API
	// server reaches it; the default is 127.0.0.1. An address of the loopback
	// becomes a Service's external name, another one its endpoint.
	AggregatorHost string
	// AggregatorPort is its port. 0 means that it is not registered.
	AggregatorPort int32
	// AggregatorCABundle are the authorities, in PEM, of its certificate,
	// which must be for taskctl-aggregator.taskctl-system.svc.
	AggregatorCABundle []byte
}

func (r Registration) webhooks() bool   { return r.WebhookURL != "" }
func (r Registration) aggregator() bool { return r.AggregatorPort != 0 }

func (r Registration) host() string {
	if r.AggregatorHost == "" {
		return "127.0.0.1"
	}
	return r.AggregatorHost
}

// byEndpoint says that a Service reaches the host by an EndpointSlice, which
// can't hold a loopback address.
func (r Registration) byEndpoint() bool { return !net.ParseIP(r.host()).IsLoopback() }

// fill completes the manifests of the registrations, and leaves out those that
// this run does not have.
func (r Registration) fill(objects []*unstructured.Unstructured, now time.Time) ([]*unstructured.Unstructured, error) {
	var filled []*unstructured.Unstructured
	for _, object := range objects {
		var err error
		switch kind := object.GetKind(); kind {
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			if !r.webhooks() {
				continue
			}
			err = r.fillWebhooks(object, now)
		case "APIService":
			if !r.aggregator() {
				continue
			}
			err = r.fillAPIService(object, now)
		case "Service":
			if !r.aggregator() || r.byEndpoint() != !isExternal(object) {
				continue
			}
			if !r.byEndpoint() {
				err = r.fillService(object)
			}
		case "EndpointSlice":
			if !r.aggregator() || !r.byEndpoint() {
				continue
			}
			err = r.fillEndpoints(object)
		default:
			err = fmt.Errorf("a registration can't be a %s", kind)
		}
		if err != nil {
			return nil, fmt.Errorf("filling in %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		filled = append(filled, object)
	}
	return filled, nil
}

// fillWebhooks replaces each webhook's Service by this process's URL, with the
// Service's path.
func (r Registration) fillWebhooks(object *unstructured.Unstructured, now time.Time) error {
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, item := range webhooks {
		webhook, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("a webhook is a %T", item)
		}
		path, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("the webhook %v has no clientConfig.service.path", webhook["name"])
		}
		webhook["clientConfig"] = map[string]any{
			"url":      r.WebhookURL + path,
			"caBundle": base64.StdEncoding.EncodeToString(r.WebhookCABundle),
		}
	}
	r.annotate(object, now)
	return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
}

func (r Registration) fillAPIService(object *unstructured.Unstructured, now time.Time) error {
	r.annotate(object, now)
	// A Service with endpoints has a port of its own, which the manifest says.
	if !r.byEndpoint() {
		if err := unstructured.SetNestedField(object.Object, int64(r.AggregatorPort), "spec", "service", "port"); err != nil {
			return err
		}
	}
	bundle := base64.StdEncoding.EncodeToString(r.AggregatorCABundle)
	return unstructured.SetNestedField(object.Object, bundle, "spec", "caBundle")
}

// fillService points the Service at this process. The API server follows an
// externalName as long as it is not told to route to endpoints by itself.
func (r Registration) fillService(object *unstructured.Unstructured) error {
	if err := unstructured.SetNestedField(object.Object, r.host(), "spec", "externalName"); err != nil {
		return err
	}
	ports := []any{map[string]any{"name": "https", "port": int64(r.AggregatorPort), "protocol": "TCP"}}
	return unstructured.SetNestedSlice(object.Object, ports, "spec", "ports")
}

// fillEndpoints makes this process the only endpoint of the Service.
func (r Registration) fillEndpoints(object *unstructured.Unstructured) error {
	endpoints := []any{map[string]any{
		"addresses":  []any{r.host()},
		"conditions": map[string]any{"ready": true},
	}}
	if err := unstructured.SetNestedSlice(object.Object, endpoints, "endpoints"); err != nil {
		return err
	}
	ports := []any{map[string]any{"name": "https", "port": int64(r.AggregatorPort), "protocol": "TCP"}}
	return unstructured.SetNestedSlice(object.Object, ports, "ports")
}

func isExternal(service *unstructured.Unstructured) bool {
	kind, _, err := unstructured.NestedString(service.Object, "spec", "type")
	return err == nil && kind == "ExternalName"
}

func (r Registration) annotate(object *unstructured.Unstructured, now time.Time) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[RunIDAnnotation] = r.RunID
	annotations[registeredAtAnnotation] = now.UTC().Format(time.RFC3339Nano)
	object.SetAnnotations(annotations)
}
