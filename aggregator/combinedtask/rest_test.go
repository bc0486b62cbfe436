package combinedtask

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// reader answers reads of Tasks with what answer returns, and counts them.
type reader struct {
	mu     sync.Mutex
	reads  int
	answer func(read int) (*taskv1.Task, error)
}

func (r *reader) Get(context.Context, string, string) (*taskv1.Task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	return r.answer(r.reads)
}

func always(task *taskv1.Task) *reader {
	return &reader{answer: func(int) (*taskv1.Task, error) { return task, nil }}
}

func notFound() error {
	return apierrors.NewNotFound(taskv1.Resource("tasks").GroupResource(), "x")
}

// rights allow what is listed as "verb resource namespace/name", and record
// what was asked.
type rights struct {
	authorizer.Authorizer // the newer methods are not used
	allowed               []string
	asked                 []string
	failure               error
}

func (r *rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	question := fmt.Sprintf("%s %s.%s %s/%s", a.GetVerb(), a.GetResource(), a.GetAPIGroup(), a.GetNamespace(), a.GetName())
	r.asked = append(r.asked, question)
	if slices.Contains(r.allowed, question) || slices.Contains(r.allowed, "*") {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", r.failure
}

func request(t testing.TB, namespace, name string) context.Context {
	ctx := genericapirequest.WithNamespace(t.Context(), namespace)
	ctx = genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: "alice"})
	return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{Namespace: namespace, Name: name})
}

func everything() *rights { return &rights{allowed: []string{"*"}} }

func TestReadersNeedTheirRightsOnBothHalves(t *testing.T) {
	f := synced(t, 0)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	get := func(r *REST, ctx context.Context) error {
		_, err := r.Get(ctx, "x", &metav1.GetOptions{})
		return err
	}
	list := func(r *REST, ctx context.Context) error {
		_, err := r.List(ctx, &metainternalversion.ListOptions{})
		return err
	}
	watch := func(r *REST, ctx context.Context) error {
		w, err := r.Watch(ctx, &metainternalversion.ListOptions{})
		if err == nil {
			w.Stop()
		}
		return err
	}
	for _, test := range []struct {
		what            string
		do              func(*REST, context.Context) error
		namespace, name string
		needed          []string
	}{
		{"get", get, "a", "x", []string{"get tasks.example.example.com a/x", "list events. a/"}},
		{"list", list, "a", "", []string{"list tasks.example.example.com a/", "list events. a/"}},
		{"list of one name", list, "a", "x", []string{"list tasks.example.example.com a/x", "list events. a/"}},
		{"list of all namespaces", list, "", "", []string{"list tasks.example.example.com /", "list events. /"}},
		{"watch", watch, "a", "", []string{"watch tasks.example.example.com a/", "watch events. a/"}},
		{"watch of all namespaces", watch, "", "", []string{"watch tasks.example.example.com /", "watch events. /"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			ctx := request(t, test.namespace, test.name)
			all := &rights{allowed: test.needed}
			if err := test.do(NewREST(f.view, always(task("a", "x", "u1", 1)), all), ctx); err != nil {
				t.Errorf("with both: %v, asked %q", err, all.asked)
			}
			for i := range test.needed {
				one := &rights{allowed: slices.Concat(test.needed[:i], test.needed[i+1:])}
				err := test.do(NewREST(f.view, always(task("a", "x", "u1", 1)), one), ctx)
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"alice" cannot `+strings.Fields(test.needed[i])[0]) {
					t.Errorf("without %q: %v", test.needed[i], err)
				}
			}
			broken := &rights{failure: errors.New("no connection")}
			if err := test.do(NewREST(f.view, always(nil), broken), ctx); !apierrors.IsInternalError(err) {
				t.Errorf("when nobody answers: %v", err)
			}
		})
	}
}

func TestWhoMayNotReadDoesNotLearnWhatExists(t *testing.T) {
	f := synced(t, 0)
	nobody := &reader{answer: func(int) (*taskv1.Task, error) { return nil, notFound() }}
	_, err := NewREST(f.view, nobody, &rights{}).Get(request(t, "a", "x"), "x", &metav1.GetOptions{})
	if !apierrors.IsForbidden(err) || nobody.reads != 0 {
		t.Errorf("got %v after %d reads", err, nobody.reads)
	}
}

func TestGetReturnsOneObject(t *testing.T) {
	f := synced(t, 0)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	must(t, f.events.Add(taskEvent("a", "e", "u1", 1)))
	got, err := NewREST(f.view, always(task("a", "x", "u1", 1)), everything()).Get(request(t, "a", "x"), "x", &metav1.GetOptions{})
	must(t, err)
	if text := describe(got.(*searchv1.CombinedTask)); text != "a/x(u1)@1: e" {
		t.Errorf("got %s", text)
	}
}

func TestGetWaitsUntilTheJoinHasWhatWasRead(t *testing.T) {
	for name, test := range map[string]struct {
		joined *taskv1.Task // what the join has at first, if anything
		live   *taskv1.Task
		arrive *taskv1.Task
		want   string
	}{
		"a new Task":     {nil, task("a", "x", "u1", 5), task("a", "x", "u1", 5), "a/x(u1)@5:"},
		"an update":      {task("a", "x", "u1", 5), task("a", "x", "u1", 6), task("a", "x", "u1", 6), "a/x(u1)@6:"},
		"a newer update": {task("a", "x", "u1", 5), task("a", "x", "u1", 6), task("a", "x", "u1", 10), "a/x(u1)@10:"},
		"another UID":    {task("a", "x", "u1", 5), task("a", "x", "u2", 8), task("a", "x", "u2", 8), "a/x(u2)@8:"},
	} {
		t.Run(name, func(t *testing.T) {
			f := synced(t, 0)
			if test.joined != nil {
				must(t, f.tasks.Add(test.joined))
			}
			source := &reader{answer: func(int) (*taskv1.Task, error) {
				// The Task was read, and the join learns of it only then.
				go func() {
					if err := f.tasks.Update(test.arrive); err != nil {
						t.Error(err)
					}
				}()
				return test.live, nil
			}}
			got, err := NewREST(f.view, source, everything()).Get(request(t, "a", "x"), "x", &metav1.GetOptions{})
			must(t, err)
			if text := describe(got.(*searchv1.CombinedTask)); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

func TestGetFails(t *testing.T) {
	f := synced(t, 0)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	ahead := task("a", "x", "u1", 9)
	for name, test := range map[string]struct {
		answer  func(int) (*taskv1.Task, error)
		options metav1.GetOptions
		is      func(error) bool
		message string
	}{
		"with 404 for what is not there, though the join still has it": {
			func(int) (*taskv1.Task, error) { return nil, notFound() }, metav1.GetOptions{},
			apierrors.IsNotFound, `combinedtasks.search.task.example.example.com "x" not found`},
		"with 503 when the join does not catch up within a second": {
			func(int) (*taskv1.Task, error) { return ahead, nil }, metav1.GetOptions{},
			apierrors.IsServiceUnavailable, "has not caught up"},
		"with 404 when it was deleted in that second": {
			func(read int) (*taskv1.Task, error) {
				if read == 1 {
					return ahead, nil
				}
				return nil, notFound()
			}, metav1.GetOptions{}, apierrors.IsNotFound, "not found"},
		"with 500 when the Task can't be read": {
			func(int) (*taskv1.Task, error) { return nil, errors.New("no connection") }, metav1.GetOptions{},
			apierrors.IsInternalError, "read Task a/x: no connection"},
		"with 410 for a version of somebody else": {
			func(int) (*taskv1.Task, error) { return ahead, nil }, metav1.GetOptions{ResourceVersion: "12345"},
			apierrors.IsResourceExpired, "12345"},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := NewREST(f.view, &reader{answer: test.answer}, everything()).Get(request(t, "a", "x"), "x", &test.options)
			if err == nil || !test.is(err) || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %v, %v", object, err)
			}
		})
	}
}

func TestGetBeforeTheJoinIsSynced(t *testing.T) {
	f := newFixture(t, 0)
	_, err := NewREST(f.view, always(task("a", "x", "u1", 1)), everything()).Get(request(t, "a", "x"), "x", &metav1.GetOptions{})
	if seconds, found := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !found || seconds < 1 {
		t.Errorf("got %v", err)
	}
}

func TestAListHasItsKindAndMetadata(t *testing.T) {
	f := synced(t, 0)
	r := NewREST(f.view, always(nil), everything())
	empty := list(t, r, &metainternalversion.ListOptions{})
	if empty.Items == nil || len(empty.Items) != 0 || empty.ResourceVersion == "" {
		t.Errorf("the empty list is %+v", empty)
	}
	for _, name := range []string{"x", "y", "z"} {
		must(t, f.tasks.Add(task("a", name, name, 1)))
	}
	page := list(t, r, &metainternalversion.ListOptions{Limit: 2})
	if len(page.Items) != 2 || page.Continue == "" || *page.RemainingItemCount != 1 {
		t.Errorf("the first page is %+v", page)
	}
}

func list(t *testing.T, r *REST, options *metainternalversion.ListOptions) *searchv1.CombinedTaskList {
	t.Helper()
	object, err := r.List(request(t, "a", ""), options)
	must(t, err)
	return object.(*searchv1.CombinedTaskList)
}
