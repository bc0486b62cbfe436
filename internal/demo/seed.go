package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// seedConcurrency is how many Tasks are written at a time: enough to keep the
// store's group commit busy.
const seedConcurrency = 32

// seededTask is what is known of a Task right after it was applied.
type seededTask struct {
	name       string
	uid        types.UID
	generation int64
	created    bool // by this run
	changed    bool // this run's spec is not observed yet
}

// seed applies the namespace and all Tasks.
func (d *demo) seed(ctx context.Context, now time.Time) ([]seededTask, error) {
	if err := d.applyNamespace(ctx); err != nil {
		return nil, err
	}
	seeded := make([]seededTask, d.options.Tasks)
	var mu sync.Mutex
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(seedConcurrency)
	for i := range seeded {
		if ctx.Err() != nil {
			break // some other one failed
		}
		group.Go(func() error {
			task, err := d.applyTask(ctx, i+1, now)
			if err != nil {
				return err
			}
			seeded[i] = task
			mu.Lock()
			defer mu.Unlock()
			done++
			d.progress(StageCreate, done)
			return nil
		})
	}
	return seeded, group.Wait()
}

func (d *demo) applyNamespace(ctx context.Context) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Namespace",
		"metadata":   map[string]any{"name": d.options.Namespace},
	}}
	resource := d.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	if _, err := resource.Apply(ctx, d.options.Namespace, namespace, applyOptions()); err != nil {
		return fmt.Errorf("creating the namespace %s: %w", d.options.Namespace, err)
	}
	return nil
}

func (d *demo) applyTask(ctx context.Context, number int, now time.Time) (seededTask, error) {
	wanted := sampleTask(number, d.options.Namespace, now)
	resource := d.dynamic.Resource(taskv1.Resource("tasks")).Namespace(d.options.Namespace)
	applied, err := resource.Apply(ctx, wanted.GetName(), wanted, applyOptions())
	if err != nil {
		return seededTask{}, fmt.Errorf("creating the Task %s: %w", wanted.GetName(), err)
	}
	observed, err := observedGeneration(applied)
	if err != nil {
		return seededTask{}, fmt.Errorf("reading the Task %s: %w", wanted.GetName(), err)
	}
	return seededTask{
		name:       applied.GetName(),
		uid:        applied.GetUID(),
		generation: applied.GetGeneration(),
		created:    observed == 0,
		changed:    observed < applied.GetGeneration(),
	}, nil
}

// applyOptions make the demo's fields the demo's again, whoever changed them.
func applyOptions() metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
}

func observedGeneration(task *unstructured.Unstructured) (int64, error) {
	observed, _, err := unstructured.NestedInt64(task.Object, "status", "observedGeneration")
	return observed, err
}
