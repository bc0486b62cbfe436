package operator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/taskctl-dev/taskctl/operator"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// TestController runs the controller against a real API server. The subtests
// share the server and run one after the other, each with a controller and a
// namespace of its own.
func TestController(t *testing.T) {
	e := newEnvironment(t)
	for name, test := range map[string]func(*testing.T, *environment){
		"announces the life of a Task":                          announcesLife,
		"needs three writes for a new Task":                     needsThreeWrites,
		"writes nothing for a settled Task":                     writesNothing,
		"announces nothing again after Events expired":          survivesExpiry,
		"announces once when it crashes before the status":      survivesCrash,
		"announces overdue by the clock":                        announcesOverdue,
		"deletes finished Tasks after their time":               deletesExpired,
		"keeps a Task that was opened again before it expired":  keepsReopened,
		"says on the Task that its Events are refused":          reportsRefusal,
		"deletes a namespace with 100 Tasks within 10 s":        deletesNamespace,
		"announces the deletion of a Task that somebody holds":  announcesDeletionOnce,
		"runs again in one process and leaves nothing behind":   leavesNothingBehind,
		"takes turns with another replica":                      takesTurns,
		"prints Events with their times":                        printsEvents,
		"lets a Task go whatever the schema and webhooks say":   letsInvalidTasksGo,
		"recreated Tasks share no Events with the earlier ones": keepsUIDsApart,
	} {
		t.Run(name, func(t *testing.T) { test(t, e) })
	}
}

func announcesLife(t *testing.T, e *environment) {
	e.run(t, nil, nil)
	task := e.create(t, e.namespace(t), nil)
	e.settled(t, task)
	e.expectReasons(t, task, taskv1.ReasonTaskCreated)
	if !meta.IsStatusConditionTrue(task.Status.Conditions, taskv1.ConditionReady) ||
		!meta.IsStatusConditionFalse(task.Status.Conditions, taskv1.ConditionOverdue) {
		t.Errorf("conditions are %+v", task.Status.Conditions)
	}

	e.patch(t, task, func(task *taskv1.Task) { task.Spec.Details = "Paint the fence green." })
	e.settled(t, task)
	e.expectReasons(t, task, taskv1.ReasonTaskCreated, taskv1.ReasonTaskUpdated)
	if task.Spec.Details != "Paint the fence green." {
		t.Errorf("details are %q", task.Spec.Details)
	}

	e.patch(t, task, func(task *taskv1.Task) { task.Spec.TaskState = taskv1.TaskStateFinished })
	e.settled(t, task)
	e.expectReasons(t, task, taskv1.ReasonTaskCreated, taskv1.ReasonTaskUpdated, taskv1.ReasonTaskFinished)
	if task.Status.FinishedAt == nil {
		t.Error("finishedAt is not set")
	}

	e.patch(t, task, func(task *taskv1.Task) { task.Spec.TaskState = taskv1.TaskStatePending })
	e.settled(t, task)
	if task.Status.FinishedAt != nil {
		t.Errorf("an open Task has finishedAt %v", task.Status.FinishedAt)
	}

	if err := e.client.Delete(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	e.gone(t, task)
	e.expectReasons(t, task, taskv1.ReasonTaskCreated, taskv1.ReasonTaskUpdated, taskv1.ReasonTaskFinished, taskv1.ReasonTaskUpdated, taskv1.ReasonTaskDeleted)
}

func needsThreeWrites(t *testing.T, e *environment) {
	traffic := &traffic{}
	clock := newCountingClock()
	e.run(t, traffic, func(o *operator.Options) { o.Clock = clock })
	before := traffic.writes.Load()
	task := e.create(t, e.namespace(t), nil)
	e.settled(t, task)
	// The watch brings the controller its own writes; the last one is looked
	// at, and nothing comes of it.
	eventually(t, "the controller looks at the settled Task", func() error {
		if clock.reads.Load() < 2 {
			return errors.New("not yet")
		}
		return nil
	})
	if writes := traffic.writes.Load() - before; writes != 3 {
		t.Errorf("a new Task costs %d writes, want 3: finalizer, Event, status", writes)
	}
}

func writesNothing(t *testing.T, e *environment) {
	namespace := e.namespace(t)
	stop := e.run(t, nil, nil)
	tasks := []*taskv1.Task{
		e.create(t, namespace, nil),
		e.create(t, namespace, func(task *taskv1.Task) { task.Spec.TaskState = taskv1.TaskStateFinished }),
		e.create(t, namespace, func(task *taskv1.Task) { task.Spec.Deadline.Time = time.Now().Add(-time.Hour) }),
	}
	for _, task := range tasks {
		e.settled(t, task)
	}
	stop()

	traffic := &traffic{}
	clock := newCountingClock()
	e.run(t, traffic, func(o *operator.Options) { o.Clock, o.ResyncPeriod = clock, time.Second })
	clock.waitReads(t, int64(4*len(tasks))) // the restart, and resyncs
	if writes := traffic.writes.Load(); writes != 0 {
		t.Errorf("the controller wrote %d times", writes)
	}
	for _, task := range tasks {
		version := task.ResourceVersion
		if e.get(t, task); task.ResourceVersion != version {
			t.Errorf("the Task's version went from %s to %s", version, task.ResourceVersion)
		}
	}
}

func survivesExpiry(t *testing.T, e *environment) {
	namespace := e.namespace(t)
	stop := e.run(t, nil, nil)
	task := e.create(t, namespace, func(task *taskv1.Task) {
		task.Spec.TaskState = taskv1.TaskStateFinished
	})
	e.settled(t, task)
	e.expectReasons(t, task, taskv1.ReasonTaskCreated, taskv1.ReasonTaskFinished)
	stop()

	if err := e.client.DeleteAllOf(t.Context(), &corev1.Event{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	clock := newCountingClock()
	e.run(t, nil, func(o *operator.Options) { o.Clock, o.ResyncPeriod = clock, time.Second })
	clock.waitReads(t, 2)
	e.expectReasons(t, task)
	e.patch(t, task, func(task *taskv1.Task) { task.Annotations = map[string]string{"seen": "yes"} })
	clock.waitReads(t, 1)
	e.expectReasons(t, task)
	e.patch(t, task, func(task *taskv1.Task) { task.Spec.Priority = 4 })
	e.settled(t, task)
	e.expectReasons(t, task, taskv1.ReasonTaskUpdated)
}

// survivesCrash lets the controller store Events and fail before the status,
// for each transition in turn, and change what happens before the next start.
func survivesCrash(t *testing.T, e *environment) {
	task := e.create(t, e.namespace(t), nil)
	steps := []struct {
		change    func(*taskv1.Task) // before the crash
		meanwhile func(*taskv1.Task) // while the controller is down
		want      []string           // Events in all after the restart
	}{
		{
			want: []string{taskv1.ReasonTaskCreated},
		},
		{
			change: func(task *taskv1.Task) { task.Spec.Priority = 4 },
			want:   []string{taskv1.ReasonTaskCreated, taskv1.ReasonTaskUpdated},
		},
		{
			change:    func(task *taskv1.Task) { task.Spec.TaskState = taskv1.TaskStateFinished },
			meanwhile: func(task *taskv1.Task) { task.Spec.Details = "Done before the rain." },
			want:      []string{taskv1.ReasonTaskCreated, taskv1.ReasonTaskUpdated, taskv1.ReasonTaskFinished},
		},
	}
	for _, step := range steps {
		if step.change != nil {
			e.patch(t, task, step.change)
		}
		var refused atomic.Int64
		crash := &traffic{fail: func(request *http.Request) error {
			if isStatusWrite(request) {
				refused.Add(1)
				return errors.New("the process crashes before the status is written")
			}
			return nil
		}}
		stop := e.run(t, crash, nil)
		eventually(t, "the controller reaches the status twice", func() error {
			if refused.Load() < 2 {
				return errors.New("not yet")
			}
			return nil
		})
		stop()
		e.get(t, task)
		if task.Status.ObservedGeneration == task.Generation {
			t.Fatal("the status advanced although it could not be written")
		}
		e.expectReasons(t, task, step.want...)
		stored := uidsByName(e.events(t, task))

		if step.meanwhile != nil {
			e.patch(t, task, step.meanwhile)
		}
		stop = e.run(t, nil, nil)
		e.settled(t, task)
		stop()
		e.expectReasons(t, task, step.want...)
		for name, uid := range uidsByName(e.events(t, task)) {
			if stored[name] != uid {
				t.Errorf("the Event %s was stored again", name)
			}
		}
	}
}

func uidsByName(events []corev1.Event) map[string]string {
	uids := map[string]string{}
	for _, event := range events {
		uids[event.Name] = string(event.UID)
	}
	return uids
}

func announcesOverdue(t *testing.T, e *environment) {
	stop := e.run(t, nil, nil)
	// The API keeps whole seconds of a Go client's time.
	task := e.create(t, e.namespace(t), func(task *taskv1.Task) { task.Spec.Deadline.Time = time.Now().Add(2 * time.Second) })
	e.settled(t, task)
	eventually(t, "the Task is overdue", func() error {
		if e.get(t, task); !meta.IsStatusConditionTrue(task.Status.Conditions, taskv1.ConditionOverdue) {
			return fmt.Errorf("conditions are %+v", task.Status.Conditions)
		}
		return nil
	})
	if time.Now().Before(task.Spec.Deadline.Time) {
		t.Error("it is overdue before its deadline")
	}
	e.expectReasons(t, task, taskv1.ReasonTaskCreated, taskv1.ReasonTaskOverdue)
	stop()

	// A clock that is behind takes nothing back and announces nothing again.
	behind := &countingClock{PassiveClock: testingclock.NewFakePassiveClock(task.Spec.Deadline.Add(-time.Hour))}
	stop = e.run(t, nil, func(o *operator.Options) { o.Clock, o.ResyncPeriod = behind, time.Second })
	behind.waitReads(t, 2)
	version := task.ResourceVersion
	if e.get(t, task); task.ResourceVersion != version {
		t.Errorf("the Task was changed to %+v", task.Status)
	}
	stop()

	e.run(t, nil, nil)
	e.patch(t, task, func(task *taskv1.Task) { task.Spec.TaskState = taskv1.TaskStateFinished })
	e.settled(t, task)
	if !meta.IsStatusConditionFalse(task.Status.Conditions, taskv1.ConditionOverdue) {
		t.Errorf("a finished Task's conditions are %+v", task.Status.Conditions)
	}
	e.expectReasons(t, task, taskv1.ReasonTaskCreated, taskv1.ReasonTaskOverdue, taskv1.ReasonTaskFinished)
}

func deletesExpired(t *testing.T, e *environment) {
	e.run(t, nil, nil)
	namespace := e.namespace(t)
	for _, seconds := range []int32{0, 1} {
		task := e.create(t, namespace, func(task *taskv1.Task) { task.Spec.TTLSecondsAfterFinished = ptr.To(seconds) })
		e.settled(t, task)
		e.patch(t, task, func(task *taskv1.Task) { task.Spec.TaskState = taskv1.TaskStateFinished })
		e.gone(t, task)
		e.expectReasons(t, task, taskv1.ReasonTaskCreated, taskv1.ReasonTaskFinished, taskv1.ReasonTaskDeleted)
	}
}

func keepsReopened(t *testing.T, e *environment) {
	stop := e.run(t, nil, nil)
	task := e.create(t, e.namespace(t), func(task *taskv1.Task) {
		task.Spec.TaskState = taskv1.TaskStateFinished
		task.Spec.TTLSecondsAfterFinished = ptr.To[int32](3600)
	})
	e.settled(t, task)
	stop()
	e.patch(t, task, func(task *taskv1.Task) { task.Spec.TaskState = taskv1.TaskStatePending })
	clock := &countingClock{PassiveClock: testingclock.NewFakePassiveClock(time.Now().Add(2 * time.Hour))}
	e.run(t, nil, func(o *operator.Options) { o.Clock, o.ResyncPeriod = clock, time.Second })
	clock.waitReads(t, 3)
	e.settled(t, task)
	if !task.DeletionTimestamp.IsZero() || task.Status.FinishedAt != nil {
		t.Errorf("deleted at %v, finished at %v", task.DeletionTimestamp, task.Status.FinishedAt)
	}
}

func reportsRefusal(t *testing.T, e *environment) {
	namespace := e.namespace(t)
	allow := e.refuseEvents(t, namespace)
	e.run(t, nil, nil)
	task := e.create(t, namespace, nil)
	eventually(t, "the Task says that its Events are refused", func() error {
		e.get(t, task)
		ready := meta.FindStatusCondition(task.Status.Conditions, taskv1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != taskv1.ReasonEventRefused {
			return fmt.Errorf("conditions are %+v", task.Status.Conditions)
		}
		return nil
	})
	if task.Status.ObservedGeneration != 0 {
		t.Errorf("the status advanced to %d although the Event is not stored", task.Status.ObservedGeneration)
	}
	allow()
	e.settled(t, task)
	e.expectReasons(t, task, taskv1.ReasonTaskCreated)
	if !meta.IsStatusConditionTrue(task.Status.Conditions, taskv1.ConditionReady) {
		t.Errorf("conditions are %+v", task.Status.Conditions)
	}
}

func announcesDeletionOnce(t *testing.T, e *environment) {
	stop := e.run(t, nil, nil)
	task := e.create(t, e.namespace(t), func(task *taskv1.Task) { task.Finalizers = []string{"example.com/hold"} })
	e.settled(t, task)
	if err := e.client.Delete(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the controller lets the Task go", func() error {
		if e.get(t, task); len(task.Finalizers) != 1 {
			return fmt.Errorf("finalizers are %v", task.Finalizers)
		}
		return nil
	})
	e.expectReasons(t, task, taskv1.ReasonTaskCreated, taskv1.ReasonTaskDeleted)
	stop()
	if err := e.client.DeleteAllOf(t.Context(), &corev1.Event{}, client.InNamespace(task.Namespace)); err != nil {
		t.Fatal(err)
	}

	clock := newCountingClock()
	traffic := &traffic{}
	e.run(t, traffic, func(o *operator.Options) { o.Clock = clock })
	other := e.create(t, task.Namespace, nil)
	e.settled(t, other) // by then the first Task has been looked at too
	e.patch(t, task, func(task *taskv1.Task) { task.Finalizers = nil })
	e.gone(t, task)
	e.expectReasons(t, task)
}

func leavesNothingBehind(t *testing.T, e *environment) {
	before := goleak.IgnoreCurrent()
	// Connections belong to whoever made the rest.Config; here that is the test.
	connections := connrotation.NewDialer((&net.Dialer{}).DialContext)
	dialing := func(o *operator.Options) {
		o.Config.Dial = connections.DialContext
		o.MetricsAddress, o.HealthProbeAddress = "127.0.0.1:0", "127.0.0.1:0"
	}
	for range 3 {
		e.run(t, nil, dialing)()
	}
	connections.CloseAll()
	goleak.VerifyNone(t, before)

	// A controller that ends before its cache could sync ends cleanly too.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	options := operator.Options{Config: rest.CopyConfig(e.operator)}
	dialing(&options)
	if err := operator.RunController(ctx, options, func() {}); err != nil {
		t.Errorf("the controller stopped with %v", err)
	}
	connections.CloseAll()
	goleak.VerifyNone(t, before)
}

func keepsUIDsApart(t *testing.T, e *environment) {
	e.run(t, nil, nil)
	namespace := e.namespace(t)
	named := func(task *taskv1.Task) { task.Name, task.GenerateName = "again", "" }
	first := e.create(t, namespace, named)
	e.settled(t, first)
	if err := e.client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	e.gone(t, first)
	second := e.create(t, namespace, named)
	e.settled(t, second)
	e.expectReasons(t, first, taskv1.ReasonTaskCreated, taskv1.ReasonTaskDeleted)
	e.expectReasons(t, second, taskv1.ReasonTaskCreated)
}
