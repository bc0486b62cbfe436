package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/taskctl-dev/taskctl/internal/install"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// deletesNamespace is the promise of a namespace with 100 Tasks, in whose
// deletion Events are refused.
func deletesNamespace(t *testing.T, e *environment) {
	const tasks, allowed = 100, 10 * time.Second
	e.run(t, nil, nil)
	namespace := e.namespace(t)
	var created []*taskv1.Task
	for range tasks {
		created = append(created, e.create(t, namespace, nil))
	}
	for _, task := range created {
		e.settled(t, task)
	}
	start := time.Now()
	if err := e.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its Tasks go", func() error {
		var left taskv1.TaskList
		if err := e.client.List(t.Context(), &left, client.InNamespace(namespace)); err != nil || len(left.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d are left", len(left.Items))
	})
	t.Logf("%d Tasks went in %s", tasks, time.Since(start))
	eventually(t, "the namespace goes", func() error {
		err := e.client.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%v)", err)
	})
	took := time.Since(start)
	t.Logf("the namespace went in %s", took)
	if took > allowed {
		t.Errorf("it took %s, more than %s", took, allowed)
	}
}

// letsInvalidTasksGo makes a Task invalid after the fact in every way that
// there is, and deletes it.
func letsInvalidTasksGo(t *testing.T, e *environment) {
	stop := e.run(t, nil, nil)
	namespace := e.namespace(t)
	task := e.create(t, namespace, func(task *taskv1.Task) { task.Spec.Priority = 9 })
	e.settled(t, task)
	stop()

	ctx := context.WithoutCancel(t.Context())
	restore := e.tighten(t)
	defer restore(ctx)
	if err := e.client.Patch(t.Context(), task.DeepCopy(), labelPatch("example.example.com/priority", "5")); !mentions(err, "webhook") {
		t.Fatalf("the webhook that answers nobody is not in force: %v", err)
	}
	bad := &taskv1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bad"},
		Spec:       taskv1.TaskSpec{Priority: 9, Deadline: metav1.Time{Time: time.Now().Add(time.Hour)}},
	}
	if err := e.client.Create(t.Context(), bad); err == nil {
		t.Fatal("a Task that breaks the tightened rules was created")
	}

	if err := e.client.Delete(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	e.run(t, nil, nil)
	e.gone(t, task)
}

func labelPatch(key, value string) client.Patch {
	return client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value))
}

func mentions(err error, part string) bool {
	return err != nil && strings.Contains(err.Error(), part)
}

// tighten lowers the highest priority in the schema and registers webhooks that
// nobody answers. The function that it returns undoes it.
func (e *environment) tighten(t *testing.T) func(context.Context) {
	t.Helper()
	c, err := dynamic.NewForConfig(e.admin)
	if err != nil {
		t.Fatal(err)
	}
	definitions := c.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const patch = `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/priority/maximum","value":5}]`
	if _, err := definitions.Patch(t.Context(), "tasks.example.example.com", "application/json-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// Nothing listens on port 1, so this registers and then waits in vain.
	ctx, cancel := context.WithCancel(t.Context())
	registered := make(chan error, 1)
	go func() {
		registered <- install.Register(ctx, e.admin, install.Registration{RunID: "test", WebhookURL: "https://127.0.0.1:1"})
	}()
	tasks := c.Resource(taskv1.Resource("tasks")).Namespace("default")
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.example.com/v1", "kind": "Task",
		"metadata": map[string]any{"generateName": "probe-"},
		"spec":     map[string]any{"priority": int64(9), "deadline": "2099-01-01T00:00:00Z"},
	}}
	eventually(t, "webhooks and schema are in force", func() error {
		dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, err := tasks.Create(t.Context(), probe, dryRun)
		if !mentions(err, "webhook") {
			return fmt.Errorf("no webhook was called: %w", errors.Join(err))
		}
		current, err := definitions.Get(t.Context(), "tasks.example.example.com", metav1.GetOptions{})
		if err == nil && current.GetGeneration() < 2 {
			return errors.New("the schema is the old one")
		}
		return err
	})
	cancel()
	if err := <-registered; err == nil {
		t.Error("Register succeeded although nobody answers")
	}
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if err := errors.Join(install.Unregister(ctx, e.admin), install.Apply(ctx, e.admin)); err != nil {
			t.Error(err)
		}
	}
}
