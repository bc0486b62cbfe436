package combinedtask

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/taskctl-dev/taskctl/aggregator/view"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// Tasks returns the half of the join that a reflector of Tasks fills. Waiting
// for resource versions ends with ctx; what was not committed by then is lost,
// as everything is when the process ends.
func (j *Join) Tasks(ctx context.Context) cache.ReflectorStore {
	return &taskStore{half{ctx, j}}
}

// Events returns the half of the join that a reflector of Events fills, of
// those that have the label [taskv1.LabelTaskUID].
func (j *Join) Events(ctx context.Context) cache.ReflectorStore {
	return &eventStore{half{ctx, j}}
}

// half is one half of the join. The interface has no context in its methods.
type half struct {
	ctx  context.Context
	join *Join
}

// change applies one change to the join's state and commits what follows.
func (h half) change(apply func(*touched)) error {
	h.join.mu.Lock()
	defer h.join.mu.Unlock()
	var t touched
	apply(&t)
	return h.join.commit(h.ctx, &t)
}

// Resync implements cache.ReflectorStore: there is nothing to do again.
func (half) Resync() error { return nil }

type taskStore struct{ half }

// Add implements cache.ReflectorStore.
func (s *taskStore) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *taskStore) Update(object any) error {
	task, err := asTask(object)
	if err != nil {
		return err
	}
	return s.change(func(t *touched) { s.join.setTask(task, t) })
}

// Delete implements cache.ReflectorStore.
func (s *taskStore) Delete(object any) error {
	task, err := asTask(object)
	if err != nil {
		return err
	}
	return s.change(func(t *touched) { s.join.dropTask(keyOf(task), t) })
}

// Replace implements cache.ReflectorStore. After a lost connection most of the
// list is what is known already: only differences are committed.
func (s *taskStore) Replace(objects []any, _ string) error {
	tasks := make(map[view.Key]*taskv1.Task, len(objects))
	for _, object := range objects {
		task, err := asTask(object)
		if err != nil {
			return err
		}
		tasks[keyOf(task)] = task
	}
	return s.change(func(t *touched) {
		for key := range s.join.tasks {
			if tasks[key] == nil {
				s.join.dropTask(key, t)
			}
		}
		for _, task := range tasks {
			s.join.setTask(task, t)
		}
		s.join.synced.tasks = true
	})
}

type eventStore struct{ half }

// Add implements cache.ReflectorStore.
func (s *eventStore) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *eventStore) Update(object any) error {
	e, err := asEvent(object)
	if err != nil {
		return err
	}
	return s.change(func(t *touched) { s.join.setEvent(e, t) })
}

// Delete implements cache.ReflectorStore. An Event that expired is deleted like
// any other one.
func (s *eventStore) Delete(object any) error {
	e, err := asEvent(object)
	if err != nil {
		return err
	}
	return s.change(func(t *touched) { s.join.dropEvent(e.key, t) })
}

// Replace implements cache.ReflectorStore.
func (s *eventStore) Replace(objects []any, _ string) error {
	events := make(map[eventKey]*event, len(objects))
	for _, object := range objects {
		e, err := asEvent(object)
		if err != nil {
			return err
		}
		events[e.key] = e
	}
	return s.change(func(t *touched) {
		for key := range s.join.events {
			if events[key] == nil {
				s.join.dropEvent(key, t)
			}
		}
		for _, e := range events {
			s.join.setEvent(e, t)
		}
		s.join.synced.events = true
	})
}

func asTask(object any) (*taskv1.Task, error) {
	task, ok := object.(*taskv1.Task)
	if !ok {
		return nil, fmt.Errorf("combine Tasks: got a %T", object)
	}
	trim(&task.ObjectMeta)
	return task, nil
}

func asEvent(object any) (*event, error) {
	body, ok := object.(*corev1.Event)
	if !ok {
		return nil, fmt.Errorf("combine Events: got a %T", object)
	}
	trim(&body.ObjectMeta)
	// Versions are numbers in every API server; what is none is put first.
	order, err := strconv.ParseUint(body.ResourceVersion, 10, 64)
	if err != nil {
		order = 0
	}
	return &event{
		key:     eventKey{body.Namespace, body.Name},
		ref:     eventRef(body.Namespace, body.Labels),
		uid:     body.UID,
		version: body.ResourceVersion,
		order:   order,
		at:      occurredAt(body),
		created: body.CreationTimestamp.Time,
		body:    body,
	}, nil
}

// trim drops what is large and says nothing to readers of a CombinedTask.
func trim(meta *metav1.ObjectMeta) {
	meta.ManagedFields = nil
	delete(meta.Annotations, corev1.LastAppliedConfigAnnotation)
	if len(meta.Annotations) == 0 {
		meta.Annotations = nil
	}
}
