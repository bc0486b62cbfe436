package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	corev1 "k8s.io/api/core/v1"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

const eventsPage = 500

// waitObserved watches the demo's Tasks until the controller has observed each
// one at least at the generation that was seeded.
func (d *demo) waitObserved(ctx context.Context, seeded []seededTask) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	stalled := time.AfterFunc(d.options.Patience, func() {
		giveUp(fmt.Errorf("none was observed for %s", d.options.Patience))
	})
	defer stalled.Stop()
	waiting := make(map[types.UID]int64, len(seeded))
	for _, task := range seeded {
		waiting[task.uid] = task.generation
	}
	observe := func(event watch.Event) (bool, error) {
		task, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return false, apiError(event)
		}
		generation, ours := waiting[task.GetUID()]
		if !ours {
			return false, nil
		}
		if event.Type == watch.Deleted {
			return false, fmt.Errorf("the Task %s was deleted meanwhile", task.GetName())
		}
		observed, err := observedGeneration(task)
		if err != nil {
			return false, fmt.Errorf("reading the Task %s: %w", task.GetName(), err)
		}
		if observed >= generation {
			delete(waiting, task.GetUID())
			stalled.Reset(d.options.Patience)
			d.progress(StageObserve, len(seeded)-len(waiting))
		}
		return len(waiting) == 0, nil
	}
	_, err := watchtools.UntilWithSync(ctx, d.listWatch(), &unstructured.Unstructured{}, nil, observe)
	if ctx.Err() != nil {
		return fmt.Errorf("the controller has not observed %d of %d Tasks: %w; `taskctl status` says whether it runs, `taskctl logs operator` why not",
			len(waiting), len(seeded), context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("waiting for the controller: %w", err)
	}
	return nil
}

func (d *demo) listWatch() *cache.ListWatch {
	resource := d.dynamic.Resource(taskv1.Resource("tasks")).Namespace(d.options.Namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = partOfLabel + "=" + partOfValue
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = partOfLabel + "=" + partOfValue
			return resource.Watch(ctx, options)
		},
	}
}

func apiError(event watch.Event) error {
	if status, ok := event.Object.(*metav1.Status); ok {
		return errors.New(status.Message)
	}
	return fmt.Errorf("the watch brought a %T", event.Object)
}

// checkEvents makes sure that every new or changed Task has an Event: the
// controller stores it before it says that it has observed the Task. Older ones
// may have none left, Events expire.
func (d *demo) checkEvents(ctx context.Context, seeded []seededTask) error {
	announced, err := d.announcedTasks(ctx)
	if err != nil {
		return err
	}
	for _, task := range seeded {
		if task.changed && !announced[string(task.uid)] {
			return fmt.Errorf("the controller has observed the Task %s but no Event says so; `taskctl logs operator` may say why", task.name)
		}
	}
	return nil
}

// announcedTasks are the UIDs of all Tasks in the namespace that have an Event.
func (d *demo) announcedTasks(ctx context.Context) (map[string]bool, error) {
	announced := map[string]bool{}
	resource := d.metadata.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(d.options.Namespace)
	options := metav1.ListOptions{LabelSelector: taskv1.LabelTaskUID, Limit: eventsPage}
	for {
		page, err := resource.List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing Events: %w", err)
		}
		err = meta.EachListItem(page, func(item runtime.Object) error {
			event, err := meta.Accessor(item)
			if err == nil {
				announced[event.GetLabels()[taskv1.LabelTaskUID]] = true
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listing Events: %w", err)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return announced, nil
		}
	}
}
