package details

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	testingclock "k8s.io/utils/clock/testing"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// version answers what the newest version of Tasks is.
type version uint64

func (v version) TaskVersion(context.Context) (uint64, error) {
	if v == 0 {
		return 0, errors.New("no connection")
	}
	return uint64(v), nil
}

// allow allows everything.
type allow struct{ authorizer.Authorizer }

func (allow) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

func task(name, details string) *taskv1.Task {
	task := &taskv1.Task{}
	task.Namespace, task.Name, task.Spec.Details = "a", name, details
	return task
}

func request(t *testing.T, query string) context.Context {
	ctx := context.WithValue(t.Context(), queryKey{}, query)
	ctx = genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: "alice"})
	return genericapirequest.WithNamespace(ctx, "")
}

func fixture(t *testing.T, v version, tasks ...any) (*Searcher, *REST, *testingclock.FakeClock) {
	s := NewSearcher()
	must(t, s.Replace(tasks, "10"))
	clock := testingclock.NewFakeClock(time.Unix(1, 0))
	return s, NewREST(s, v, allow{}, clock), clock
}

func list(t *testing.T, r *REST, query string, options metainternalversion.ListOptions) (*searchv1.TaskMatchList, error) {
	object, err := r.List(request(t, query), &options)
	if err != nil {
		return nil, err
	}
	return object.(*searchv1.TaskMatchList), nil
}

func names(list *searchv1.TaskMatchList) string {
	var all []string
	for _, match := range list.Items {
		all = append(all, match.Name)
	}
	return strings.Join(all, " ")
}

func TestASearchWaitsForWhatWasWrittenBefore(t *testing.T) {
	s, r, _ := fixture(t, 12)
	go func() {
		_ = s.Add(task("x", "word"))
		s.UpdateResourceVersion("12")
	}()
	found, err := list(t, r, "word", metainternalversion.ListOptions{})
	must(t, err)
	if names(found) != "x" || found.ResourceVersion != "12" {
		t.Errorf("got %q at %s", names(found), found.ResourceVersion)
	}
}

func TestASearchWaitsForAVersionThatIsNamed(t *testing.T) {
	_, r, _ := fixture(t, 0, task("x", "word"))
	found, err := list(t, r, "word", metainternalversion.ListOptions{ResourceVersion: "9"})
	must(t, err)
	if names(found) != "x" {
		t.Errorf("got %q", names(found))
	}
	if _, err := list(t, r, "word", metainternalversion.ListOptions{ResourceVersion: "0"}); err != nil {
		t.Error(err)
	}
	if _, err := list(t, r, "word", metainternalversion.ListOptions{ResourceVersion: "99"}); !apierrors.IsTimeout(err) {
		t.Errorf("a version that never comes: %v", err)
	}
	if _, err := list(t, r, "word", metainternalversion.ListOptions{ResourceVersion: "9", ResourceVersionMatch: metav1.ResourceVersionMatchExact}); !apierrors.IsBadRequest(err) {
		t.Errorf("an exact version: %v", err)
	}
	if _, err := list(t, r, "word", metainternalversion.ListOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("no connection: %v", err)
	}
}

func TestNothingIsFoundBeforeEverythingIsIndexed(t *testing.T) {
	r := NewREST(NewSearcher(), version(1), allow{}, testingclock.NewFakeClock(time.Unix(1, 0)))
	if _, err := list(t, r, "word", metainternalversion.ListOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v", err)
	}
}

func TestAListIsReplaced(t *testing.T) {
	s, r, _ := fixture(t, 1, task("x", "word"), task("y", "word"))
	must(t, s.Replace([]any{task("y", "other"), task("z", "word")}, "11"))
	found, err := list(t, r, "word OR other", metainternalversion.ListOptions{})
	must(t, err)
	if names(found) != "y z" {
		t.Errorf("got %q", names(found))
	}
	must(t, s.Delete(task("z", "")))
	if found, err = list(t, r, "word", metainternalversion.ListOptions{}); err != nil || names(found) != "" {
		t.Errorf("got %q, %v", names(found), err)
	}
	for what, err := range map[string]error{"add": s.Add(7), "delete": s.Delete(7), "replace": s.Replace([]any{7}, "1")} {
		if err == nil {
			t.Errorf("%s: a number is taken for a Task", what)
		}
	}
}

func TestPagesAreKeptForAWhile(t *testing.T) {
	_, r, clock := fixture(t, 1, task("x", "word"), task("y", "word"), task("z", "word"))
	first, err := list(t, r, "word", metainternalversion.ListOptions{Limit: 1})
	must(t, err)
	next := metainternalversion.ListOptions{Limit: 1, Continue: first.Continue}
	clock.Step(keepResults - time.Second)
	second, err := list(t, r, "word", next)
	must(t, err)
	if names(first)+names(second) != "xy" {
		t.Errorf("got %q, then %q", names(first), names(second))
	}
	clock.Step(2 * time.Second)
	if _, err := list(t, r, "word", next); !apierrors.IsResourceExpired(err) {
		t.Errorf("after five minutes: %v", err)
	}

	// The oldest of very many is dropped.
	first, err = list(t, r, "word", metainternalversion.ListOptions{Limit: 1})
	must(t, err)
	for range maxResults {
		_, err := list(t, r, "word", metainternalversion.ListOptions{Limit: 1})
		must(t, err)
	}
	if _, err := list(t, r, "word", metainternalversion.ListOptions{Continue: first.Continue}); !apierrors.IsResourceExpired(err) {
		t.Errorf("of too many: %v", err)
	}
	if len(r.results.kept) > maxResults {
		t.Errorf("%d results are kept", len(r.results.kept))
	}

	clock.Step(time.Second)
	another := NewREST(r.searcher, version(1), allow{}, clock)
	kept, err := list(t, another, "word", metainternalversion.ListOptions{Limit: 1})
	must(t, err)
	if _, err := list(t, r, "word", metainternalversion.ListOptions{Continue: kept.Continue}); !apierrors.IsResourceExpired(err) {
		t.Errorf("of another run: %v", err)
	}
}

func TestATableShowsTheSnippet(t *testing.T) {
	_, r, _ := fixture(t, 1, task("x", "a word"))
	found, err := list(t, r, "word", metainternalversion.ListOptions{})
	must(t, err)
	printed, err := r.ConvertToTable(t.Context(), found, &metav1.TableOptions{})
	must(t, err)
	if got := fmt.Sprint(printed.Rows[0].Cells[0], printed.Rows[0].Cells[2]); got != "xa [word]" {
		t.Errorf("got %s", got)
	}
}
