package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

const (
	apiServiceName    = "v1.search.task.example.example.com"
	combinedTasksPath = "/apis/search.task.example.example.com/v1/combinedtasks"

	// attemptLimit bounds one attempt at an API that may not be there yet.
	attemptLimit = 5 * time.Second
)

// waitWebhooks applies a Task for show (a dry run stores nothing) until both
// webhooks have left their mark on it: the labels, and the warning about its
// deadline. It applies instead of creating, because kube-apiserver lets each
// create of a custom resource wait for 2 s while its definition is younger than
// that (apiextensions-apiserver, customresource_handler.go).
func (c *client) waitWebhooks(ctx context.Context) error {
	tasks := c.dynamic.Resource(taskv1.Resource("tasks")).Namespace(systemNamespace)
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": taskv1.GroupVersion().String(),
		"kind":       "Task",
		"metadata":   map[string]any{"name": "taskctl-probe-" + rand.String(8), "namespace": systemNamespace},
		"spec":       map[string]any{"priority": int64(0), "deadline": "1970-01-01T00:00:00Z"},
	}}
	options := metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager}
	return poll(ctx, "the admission webhooks to be called", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, attemptLimit)
		defer cancel()
		created, err := tasks.Apply(ctx, probe.GetName(), probe, options)
		if err != nil {
			return err
		}
		if created.GetLabels()[taskv1.LabelPriority] != "0" {
			return errors.New("the defaulting webhook was not called")
		}
		if !c.warnings.contain("spec.deadline") {
			return errors.New("the validating webhook was not called")
		}
		return nil
	})
}

// WaitAvailable returns when the APIService is Available and a list of
// combinedtasks through the API server was answered by the run with that id.
// The condition alone may still be that of an earlier run.
func WaitAvailable(ctx context.Context, config *rest.Config, runID string) error {
	c, err := connect(config)
	if err != nil {
		return err
	}
	defer c.close()
	return c.waitAggregator(ctx, runID)
}

func (c *client) waitAggregator(ctx context.Context, runID string) error {
	services := c.dynamic.Resource(schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices",
	})
	err := poll(ctx, "the APIService "+apiServiceName+" to be Available", func(ctx context.Context) error {
		current, err := services.Get(ctx, apiServiceName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return conditionTrue(current, "Available")
	})
	if err != nil {
		return err
	}
	return poll(ctx, "combinedtasks to be answered by this run", func(ctx context.Context) error {
		return c.askCombinedTasks(ctx, runID)
	})
}

// askCombinedTasks lists combinedtasks and checks which run answered.
func (c *client) askCombinedTasks(ctx context.Context, runID string) error {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	base, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return fmt.Errorf("reading the API server's address: %w", err)
	}
	address := base.JoinPath(combinedTasksPath)
	address.RawQuery = "limit=1"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end or given up
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	if got := response.Header.Get(RunIDHeader); got != runID {
		return fmt.Errorf("it was answered by the run %q, not by this one (%q)", got, runID)
	}
	return nil
}
