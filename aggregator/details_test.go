package aggregator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// details is the path of a search in a namespace, "" for all.
func details(namespace, query string, more ...string) string {
	path := "/apis/search.task.example.example.com/v1/"
	if namespace != "" {
		path += "namespaces/" + namespace + "/"
	}
	return path + "details?q=" + url.QueryEscape(query) + strings.Join(more, "")
}

// search expects a list and returns it, and the names in it.
func (s *server) search(t *testing.T, transport http.RoundTripper, path string) (searchv1.TaskMatchList, string) {
	t.Helper()
	got := s.get(t, transport, path)
	if err := expectCode(path, got, http.StatusOK); err != nil {
		t.Fatal(err)
	}
	var list searchv1.TaskMatchList
	must(t, json.Unmarshal([]byte(got.body), &list))
	if list.Kind != "TaskMatchList" {
		t.Errorf("the answer's kind is %s", list.Kind)
	}
	var names []string
	for _, match := range list.Items {
		names = append(names, match.Name)
	}
	return list, strings.Join(names, " ")
}

func (c control) createDetailed(t *testing.T, namespace, name, details string) *taskv1.Task {
	t.Helper()
	task := c.newTask(namespace, name, 3)
	task.Spec.Details = details
	created := &taskv1.Task{}
	must(t, c.tasks.Post().Namespace(namespace).Resource("tasks").Body(task).Do(t.Context()).Into(created))
	return created
}

// testDetails searches. The words are this test's own: other Tasks are around.
func testDetails(t *testing.T, c control) {
	s := c.run(t, c.options(t))
	admin := c.asAdmin(t)
	namespace, other := c.namespace(t), c.namespace(t)
	door := c.createDetailed(t, namespace, "door", "Paint the quixred door")
	// Right after the write, each time.
	if _, names := s.search(t, admin, details("", "quixred")); names != "door" {
		t.Errorf("right after a write: got %q", names)
	}
	c.createDetailed(t, namespace, "gate", "paint quixred, quixred gate")
	c.createDetailed(t, other, "wall", "the quixred wall")
	for query, want := range map[string]string{
		"quixred":                 "gate wall door", // more often, then shorter
		`"quixred door"`:          "door",
		"quixred paint":           "gate door",
		"quixred AND (door OR x)": "door",
		"quixr* NOT paint":        "wall",
		"quixred OR quixblue":     "gate wall door",
		"quixblue":                "",
		"":                        "",
		"  ":                      "",
	} {
		if _, names := s.search(t, admin, details("", query)); names != want {
			t.Errorf("%q: got %q, want %q", query, names, want)
		}
	}
	if _, names := s.search(t, admin, "/apis/search.task.example.example.com/v1/details"); names != "" {
		t.Errorf("without q: got %q", names)
	}
	if _, names := s.search(t, admin, details(namespace, "quixred")); names != "gate door" {
		t.Errorf("in a namespace: got %q", names)
	}
	if _, names := s.search(t, admin, details("", "quixred", "&fieldSelector=metadata.name%3Dwall,spec.priority%3D3")); names != "wall" {
		t.Errorf("by field: got %q", names)
	}
	list, _ := s.search(t, admin, details("", `"quixred door"`))
	match := list.Items[0]
	if match.Namespace != namespace || match.UID != door.UID || match.Score <= 0 || match.Snippet != "Paint the [quixred] [door]" || match.Spec.Priority != 3 || match.ManagedFields != nil {
		t.Errorf("got %+v", match)
	}

	detailsBroken(t, s, admin)
	detailsPages(t, s, namespace)
	detailsRights(t, s, namespace)

	c.deleteTask(t, namespace, "door")
	must(t, c.tasks.Patch("application/merge-patch+json").Namespace(other).Resource("tasks").Name("wall").Body([]byte(`{"spec":{"details":"now quixblue"}}`)).Do(t.Context()).Error())
	if _, names := s.search(t, admin, details("", "quixred OR quixblue")); names != "wall gate" && names != "gate wall" {
		t.Errorf("after a change: got %q", names)
	}
	s.stop()
	s = c.run(t, c.options(t))
	if _, names := s.search(t, admin, details("", "quixred")); names != "gate" {
		t.Errorf("after a restart: got %q", names)
	}
}

func detailsBroken(t *testing.T, s *server, admin http.RoundTripper) {
	for query, position := range map[string]int{"red AND": 8, `x "y`: 3, "(x": 1, "!!!": 1} {
		got := s.get(t, admin, details("", query))
		if got.code != 400 || got.status.Reason != metav1.StatusReasonBadRequest || !strings.Contains(got.status.Message, fmt.Sprintf("at character %d: ", position)) {
			t.Errorf("%q: %d %s", query, got.code, got.body)
			continue
		}
		if field := got.status.Details.Causes[0].Field; field != fmt.Sprintf("q[%d]", position) {
			t.Errorf("%q: the field is %s", query, field)
		}
	}
	for _, path := range []string{details("", "x", "&watch=1"), strings.Replace(details("default", "x"), "details", "details/x", 1)} {
		if err := expectCode(path, s.get(t, admin, path), 404, 405); err != nil {
			t.Error(err)
		}
	}
}

func detailsPages(t *testing.T, s *server, namespace string) {
	admin := s.asAdmin(t)
	for i := range 7 {
		s.createDetailed(t, namespace, fmt.Sprint("page", i), "zyxpage")
	}
	first, names := s.search(t, admin, details("", "zyxpage", "&limit=3"))
	if names != "page0 page1 page2" || *first.RemainingItemCount != 4 {
		t.Errorf("the first page: %q, %d remain", names, *first.RemainingItemCount)
	}
	// What changes meanwhile changes no page to come.
	s.deleteTask(t, namespace, "page4")
	s.createDetailed(t, namespace, "page9", "zyxpage")
	second, names := s.search(t, admin, details("", "zyxpage", "&limit=3&continue="+first.Continue))
	if names != "page3 page4 page5" {
		t.Errorf("the second page: %q", names)
	}
	if third, names := s.search(t, admin, details("", "zyxpage", "&limit=3&continue="+second.Continue)); names != "page6" || third.Continue != "" {
		t.Errorf("the third page: %q, continue %q", names, third.Continue)
	}
	for path, code := range map[string]int{
		details("", "other", "&continue="+first.Continue):          400,
		details(namespace, "zyxpage", "&continue="+first.Continue): 400,
		details("", "zyxpage", "&continue=nonsense"):               400,
		details("", "zyxpage", "&resourceVersion=x"):               400,
	} {
		if err := expectCode(path, s.get(t, admin, path), code); err != nil {
			t.Error(err)
		}
	}
}

// detailsRights: all namespaces are for those who may list Tasks everywhere.
func detailsRights(t *testing.T, s *server, namespace string) {
	search := rule("search.task.example.example.com", "details", "list")
	tasks := rule("example.example.com", "tasks", "list")
	s.grant(t, "finder", namespace, search, tasks)
	s.grant(t, "half-a-finder", namespace, search)
	s.grant(t, "other-half", namespace, tasks)
	s.grant(t, "find-all", "", search, tasks)
	here, everywhere := details(namespace, "quixred"), details("", "quixred")
	for user, codes := range map[string][2]int{
		"finder": {200, 403}, "half-a-finder": {403, 403}, "other-half": {403, 403}, "find-all": {200, 200}, "nobody": {403, 403},
	} {
		transport := s.proxied(t, user, "system:authenticated")
		for i, path := range []string{here, everywhere} {
			eventually(t, "the API server knows the rights", func() error {
				return expectCode(user+" at "+path, s.get(t, transport, path), codes[i])
			})
		}
	}
	if got := s.get(t, s.proxied(t, "half-a-finder", "system:authenticated"), here); !strings.Contains(got.status.Message, `cannot list resource "tasks"`) {
		t.Errorf("the error does not say what is missing: %s", got.status.Message)
	}
}
