package combinedtask

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/view"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

type counter struct{ last atomic.Uint64 }

func (c *counter) Next(ctx context.Context) (uint64, error) { return c.last.Add(1), ctx.Err() }

// fixture is a join that a test feeds in the place of the reflectors.
type fixture struct {
	t      testing.TB
	view   *view.View
	join   *Join
	tasks  cache.ReflectorStore
	events cache.ReflectorStore
}

func newFixture(t testing.TB, eventsPerTask int) fixture {
	v := NewView(view.Options{Numbers: &counter{}})
	t.Cleanup(v.Close)
	j := NewJoin(v, eventsPerTask)
	return fixture{t: t, view: v, join: j, tasks: j.Tasks(t.Context()), events: j.Events(t.Context())}
}

// synced makes a join whose halves are known and empty.
func synced(t testing.TB, eventsPerTask int) fixture {
	f := newFixture(t, eventsPerTask)
	must(t, f.tasks.Replace(nil, ""))
	must(t, f.events.Replace(nil, ""))
	return f
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// task makes a Task; version is its resourceVersion.
func task(namespace, name, uid string, version int) *taskv1.Task {
	task := &taskv1.Task{}
	task.Namespace, task.Name, task.UID = namespace, name, types.UID(uid)
	task.ResourceVersion = strconv.Itoa(version)
	task.Spec.TaskState = taskv1.TaskStatePending
	return task
}

// taskEvent makes an Event about the Task with this UID; second is when it was
// seen.
func taskEvent(namespace, name, taskUID string, second int) *corev1.Event {
	event := &corev1.Event{}
	event.Namespace, event.Name, event.UID = namespace, name, types.UID(namespace+"/"+name)
	event.ResourceVersion = strconv.Itoa(second + 1)
	event.Labels = map[string]string{taskv1.LabelTaskUID: taskUID}
	event.LastTimestamp = metav1.Unix(int64(second), 0)
	event.Reason = "Reason-" + name
	return event
}

func objects[T any](list ...T) []any {
	all := make([]any, 0, len(list))
	for _, object := range list {
		all = append(all, object)
	}
	return all
}

// state writes everything that a list shows: "namespace/name(uid)@version:
// event event" for each object, "+N" for Events that are not shown.
func (f fixture) state() []string {
	f.t.Helper()
	page, err := f.view.List("", &metainternalversion.ListOptions{})
	must(f.t, err)
	var lines []string
	for _, row := range page.Rows {
		lines = append(lines, describe(row.Object().(*searchv1.CombinedTask)))
	}
	return lines
}

func describe(combined *searchv1.CombinedTask) string {
	line := fmt.Sprintf("%s/%s(%s)@%s:", combined.Namespace, combined.Name, combined.UID, combined.Status.TaskResourceVersion)
	for _, event := range combined.Status.Events {
		line += " " + event.Name
	}
	if hidden := int(combined.Status.EventsCount) - len(combined.Status.Events); hidden > 0 || combined.Status.EventsTruncated {
		line += " +" + strconv.Itoa(hidden)
	}
	return line
}

func (f fixture) expect(what string, want ...string) {
	f.t.Helper()
	if got := f.state(); !slices.Equal(got, want) {
		f.t.Fatalf("%s: got\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// watchFromNow starts a watch without initial objects.
func (f fixture) watchFromNow() watch.Interface {
	f.t.Helper()
	page, err := f.view.List("", &metainternalversion.ListOptions{Limit: 1})
	must(f.t, err)
	w, err := f.view.Watch(f.t.Context(), "", &metainternalversion.ListOptions{ResourceVersion: page.ResourceVersion})
	must(f.t, err)
	f.t.Cleanup(w.Stop)
	return w
}

// expectNext takes events from a watch and compares them, in any order among
// themselves if they are one relist's.
func expectNext(t testing.TB, w watch.Interface, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case event := <-w.ResultChan():
			got = append(got, string(event.Type)+" "+describe(event.Object.(*searchv1.CombinedTask)))
		case <-time.After(patience):
			t.Fatalf("no further event within %s after %q, want %q", patience, got, want)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// expectQuiet checks that nothing was said since, by a change that is.
func (f fixture) expectQuiet(w watch.Interface) {
	f.t.Helper()
	must(f.t, f.tasks.Add(task("zz", "marker", "marker", 1)))
	expectNext(f.t, w, "ADDED zz/marker(marker)@1:")
	must(f.t, f.tasks.Delete(task("zz", "marker", "marker", 2)))
	expectNext(f.t, w, "DELETED zz/marker(marker)@1:")
}
