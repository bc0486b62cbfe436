package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/taskctl-dev/taskctl/operator"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
	"github.com/taskctl-dev/taskctl/test/harness"
)

// limit bounds the wait for a condition that comes within a second on an idle
// machine.
const limit = time.Minute

// environment is an API server with the manifests applied and no operator but
// the one that a test starts in its own process.
type environment struct {
	client    client.Client // an administrator's
	admin     *rest.Config
	operator  *rest.Config // the operator's own identity
	appliance *harness.Appliance
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what needs an API server")
	}
	appliance := harness.Start(t, "--without", "operator,webhooks,aggregator,registration")
	logf.SetLogger(logr.Discard()) // controller-runtime asks for one in its client too
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(taskv1.AddToScheme, corev1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin := appliance.REST()
	c, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &environment{client: c, admin: admin, operator: appliance.Identity("operator"), appliance: appliance}
}

// namespace makes a namespace for one test.
func (e *environment) namespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	if err := e.client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.removeNamespace(t, namespace) })
	return namespace.Name
}

// removeNamespace deletes a namespace and waits until its Tasks are gone,
// whether or not a controller runs that lets them go, so that no test sees
// those of another one.
func (e *environment) removeNamespace(t *testing.T, namespace *corev1.Namespace) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := e.client.DeleteAllOf(ctx, &taskv1.Task{}, client.InNamespace(namespace.Name)); err != nil {
		t.Error(err)
	}
	if err := e.client.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	eventually(t, "the Tasks of "+namespace.Name+" go", func() error {
		var tasks taskv1.TaskList
		if err := e.client.List(ctx, &tasks, client.InNamespace(namespace.Name)); err != nil {
			return err
		}
		for _, task := range tasks.Items {
			if err := e.client.Patch(ctx, &task, rawMergePatch(`{"metadata":{"finalizers":null}}`)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if len(tasks.Items) > 0 {
			return fmt.Errorf("%d are left", len(tasks.Items))
		}
		return nil
	})
}

// create makes a pending Task that is due in an hour, changed by change.
func (e *environment) create(t *testing.T, namespace string, change func(*taskv1.Task)) *taskv1.Task {
	t.Helper()
	task := &taskv1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "task-"},
		Spec: taskv1.TaskSpec{
			Priority: 3,
			Details:  "Paint the fence.",
			Deadline: metav1.Time{Time: time.Now().Add(time.Hour)},
		},
	}
	if change != nil {
		change(task)
	}
	if err := e.client.Create(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	return task
}

// patch changes a Task as kubectl edit would.
func (e *environment) patch(t *testing.T, task *taskv1.Task, change func(*taskv1.Task)) {
	t.Helper()
	before := task.DeepCopy()
	change(task)
	if err := e.client.Patch(t.Context(), task, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (e *environment) get(t *testing.T, task *taskv1.Task) {
	t.Helper()
	if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(task), task); err != nil {
		t.Fatal(err)
	}
}

// settled waits until the controller has observed the Task's newest generation.
func (e *environment) settled(t *testing.T, task *taskv1.Task) {
	t.Helper()
	eventually(t, "the controller observes "+task.Name, func() error {
		e.get(t, task)
		if task.Status.ObservedGeneration != task.Generation {
			return fmt.Errorf("generation %d, observed %d", task.Generation, task.Status.ObservedGeneration)
		}
		return nil
	})
}

// gone waits until the Task does not exist any more.
func (e *environment) gone(t *testing.T, task *taskv1.Task) {
	t.Helper()
	eventually(t, task.Name+" goes", func() error {
		err := e.client.Get(t.Context(), client.ObjectKeyFromObject(task), task.DeepCopy())
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%v)", err)
	})
}

// events are the Events of a Task by the label that joins them.
func (e *environment) events(t *testing.T, task *taskv1.Task) []corev1.Event {
	t.Helper()
	var list corev1.EventList
	err := e.client.List(t.Context(), &list, client.InNamespace(task.Namespace), client.MatchingLabels{taskv1.LabelTaskUID: string(task.UID)})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// expectReasons compares the reasons of a Task's Events, in any order.
func (e *environment) expectReasons(t *testing.T, task *taskv1.Task, want ...string) {
	t.Helper()
	count := map[string]int{}
	for _, reason := range want {
		count[reason]++
	}
	var got []string
	for _, event := range e.events(t, task) {
		got = append(got, event.Reason)
		count[event.Reason]--
	}
	for _, difference := range count {
		if difference != 0 {
			t.Fatalf("the Events of %s are %v, want %v", task.Name, got, want)
		}
	}
}

// traffic counts what a controller sends, and can make some of it fail.
type traffic struct {
	writes     atomic.Int64
	taskWrites atomic.Int64              // all but those for the election of a leader
	fail       func(*http.Request) error // nil: nothing fails
}

func (tr *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return &countingTransport{traffic: tr, RoundTripper: next}
}

type countingTransport struct {
	http.RoundTripper
	traffic *traffic
}

func (c *countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		c.traffic.writes.Add(1)
		if !strings.Contains(request.URL.Path, "/namespaces/taskctl-system/") {
			c.traffic.taskWrites.Add(1)
		}
	}
	if c.traffic.fail != nil {
		if err := c.traffic.fail(request); err != nil {
			return nil, err
		}
	}
	return c.RoundTripper.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the connections, to close them.
func (c *countingTransport) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

// isStatusWrite says whether a request writes a Task's status.
func isStatusWrite(request *http.Request) bool {
	return request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/status")
}

// countingClock is a clock that counts how often it is read: once for each Task
// that the controller looks at.
type countingClock struct {
	clock.PassiveClock
	reads atomic.Int64
}

func newCountingClock() *countingClock { return &countingClock{PassiveClock: clock.RealClock{}} }

func (c *countingClock) Now() time.Time {
	c.reads.Add(1)
	return c.PassiveClock.Now()
}

// waitReads waits until the clock has been read n more times.
func (c *countingClock) waitReads(t *testing.T, n int64) {
	t.Helper()
	start := c.reads.Load()
	eventually(t, fmt.Sprintf("the controller looks at %d Tasks", n), func() error {
		if read := c.reads.Load() - start; read < n {
			return fmt.Errorf("it looked at %d", read)
		}
		return nil
	})
}

// run starts a controller with the operator's own identity and waits until it
// is ready. The function that it returns stops it and may be called again.
func (e *environment) run(t *testing.T, traffic *traffic, change func(*operator.Options)) func() {
	t.Helper()
	options := operator.Options{Config: rest.CopyConfig(e.operator), Instance: "test"}
	if traffic != nil {
		options.Config.Wrap(traffic.wrap)
	}
	if change != nil {
		change(&options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- operator.RunController(ctx, options, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("the controller ended before it was ready: %v", err)
	case <-time.After(limit):
		cancel()
		t.Fatalf("the controller was not ready within %s: %v", limit, <-ended)
	}
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller stopped with %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// eventually waits until try returns nil.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(limit)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waited %s until %s: %v", limit, what, err)
		case <-ticker.C:
		}
	}
}
