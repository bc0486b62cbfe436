package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pollInterval is short because a start waits for it, and cheap because what is
// polled for comes within a second.
const pollInterval = 20 * time.Millisecond

// poll calls try until it returns nil or ctx ends. The error then says what was
// waited for and why the last attempt failed.
func poll(ctx context.Context, what string, try func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // what fails because ctx ended says nothing new
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; the last answer was: %w", what, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

// conditionTrue returns nil if object's status has a condition of that type
// with status True, and otherwise an error with the condition's own words.
func conditionTrue(object *unstructured.Unstructured, conditionType string) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if !ok || condition["type"] != conditionType {
			continue
		}
		if condition["status"] == "True" {
			return nil
		}
		return fmt.Errorf("%s is %v: %v: %v", conditionType, condition["status"], condition["reason"], condition["message"])
	}
	return fmt.Errorf("there is no condition %s yet", conditionType)
}

// servedResources are the resources, one a version, that a
// CustomResourceDefinition defines and serves.
func servedResources(definition *unstructured.Unstructured) ([]schema.GroupVersionResource, error) {
	group, _, err := unstructured.NestedString(definition.Object, "spec", "group")
	if err != nil {
		return nil, err
	}
	plural, _, err := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	if err != nil {
		return nil, err
	}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return nil, err
	}
	var resources []schema.GroupVersionResource
	for _, item := range versions {
		version, ok := item.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		name, ok := version["name"].(string)
		if !ok {
			return nil, errors.New("a version of the CustomResourceDefinition has no name")
		}
		resources = append(resources, schema.GroupVersionResource{Group: group, Version: name, Resource: plural})
	}
	return resources, nil
}
