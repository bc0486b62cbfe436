package aggregator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// client reads combinedtasks with client-go, through the front proxy.
func (s *server) client(t *testing.T, transport http.RoundTripper) rest.Interface {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, searchv1.AddToScheme(scheme))
	version := searchv1.GroupVersion()
	client, err := rest.RESTClientFor(&rest.Config{
		Host:      "https://" + s.address,
		Transport: transport,
		QPS:       -1,
		APIPath:   "/apis",
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &version,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	})
	must(t, err)
	return client
}

func (s *server) watch(t *testing.T, namespace string, options metav1.ListOptions) watch.Interface {
	t.Helper()
	options.Watch = true
	w, err := s.client(t, s.asAdmin(t)).Get().Namespace(namespace).Resource("combinedtasks").
		VersionedParams(&options, metav1.ParameterCodec).Watch(t.Context())
	must(t, err)
	t.Cleanup(w.Stop)
	return w
}

// next returns the next event that is accepted, and how long it took.
func next(t *testing.T, w watch.Interface, accept func(watch.EventType, *searchv1.CombinedTask) bool) (*searchv1.CombinedTask, time.Duration) {
	t.Helper()
	start := time.Now()
	timeout := time.After(patience)
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				t.Fatal("the watch ended")
			}
			combined, ok := event.Object.(*searchv1.CombinedTask)
			if !ok {
				t.Fatalf("got %s %T %+v", event.Type, event.Object, event.Object)
			}
			if accept(event.Type, combined) {
				return combined, time.Since(start)
			}
		case <-timeout:
			t.Fatalf("no such event within %s", patience)
		}
	}
}

func ofType(want watch.EventType, name string) func(watch.EventType, *searchv1.CombinedTask) bool {
	return func(got watch.EventType, combined *searchv1.CombinedTask) bool {
		return got == want && combined.Name == name
	}
}

func testJoins(t *testing.T, c control) {
	s := c.run(t, c.options(t))
	namespace := c.namespace(t)
	w := s.watch(t, namespace, metav1.ListOptions{})
	urgent := s.watch(t, namespace, metav1.ListOptions{FieldSelector: "spec.priority=9"})

	task := c.createTask(t, namespace, "x", 1)
	added, _ := next(t, w, ofType(watch.Added, "x"))
	if added.UID != task.UID || added.Spec.Details != task.Spec.Details || added.Status.TaskResourceVersion != task.ResourceVersion || added.ManagedFields != nil {
		t.Errorf("added: %+v, for %+v", added, task)
	}

	c.createEvent(t, task, "one")
	modified, took := next(t, w, ofType(watch.Modified, "x"))
	if len(modified.Status.Events) != 1 || modified.Status.Events[0].Name != "one" || modified.Status.EventsCount != 1 {
		t.Errorf("with an Event: %+v", modified.Status)
	}
	if took > time.Second {
		t.Errorf("the Event was seen after %s", took)
	}
	if modified.Status.TaskResourceVersion != added.Status.TaskResourceVersion || modified.ResourceVersion == added.ResourceVersion {
		t.Errorf("an Event alone changed the Task: %+v", modified)
	}

	must(t, c.admin.CoreV1().Events(namespace).Delete(t.Context(), "one", metav1.DeleteOptions{}))
	if expired, _ := next(t, w, ofType(watch.Modified, "x")); expired.Status.EventsCount != 0 {
		t.Errorf("after the Event went: %+v", expired.Status)
	}

	patch := func(priority int) {
		must(t, c.tasks.Patch("application/merge-patch+json").Namespace(namespace).Resource("tasks").Name("x").
			Body(fmt.Appendf(nil, `{"spec":{"priority":%d}}`, priority)).Do(t.Context()).Error())
		// Whoever has written reads it back.
		got := s.get(t, c.asAdmin(t), in(namespace)+"/x")
		if !strings.Contains(got.body, fmt.Sprintf(`"priority":%d`, priority)) {
			t.Errorf("right after the write: %d %s", got.code, got.body)
		}
	}
	patch(9)
	next(t, urgent, ofType(watch.Added, "x"))
	patch(2)
	if left, _ := next(t, urgent, ofType(watch.Deleted, "x")); left.Spec.Priority != 9 {
		t.Errorf("what left the selection: %+v", left.Spec)
	}

	c.createEvent(t, task, "old")
	c.deleteTask(t, namespace, "x")
	next(t, w, ofType(watch.Deleted, "x"))
	if got := s.get(t, c.asAdmin(t), in(namespace)+"/x"); got.code != 404 {
		t.Errorf("right after the deletion: %d %s", got.code, got.body)
	}
	again := c.createTask(t, namespace, "x", 1)
	c.createEvent(t, again, "new")
	fresh, _ := next(t, w, func(kind watch.EventType, combined *searchv1.CombinedTask) bool {
		return combined.Status.EventsCount > 0 && combined.UID == again.UID
	})
	if len(fresh.Status.Events) != 1 || fresh.Status.Events[0].Name != "new" {
		t.Errorf("Events of the former Task of that name show: %+v", fresh.Status.Events)
	}
	c.deleteTask(t, namespace, "x")
	next(t, w, ofType(watch.Deleted, "x"))
}

// testInformers runs client-go informers with both ways of starting, on the
// same data, through a change of server.
func testInformers(t *testing.T, c control) {
	s := c.run(t, c.options(t))
	namespace := c.namespace(t)
	c.createTask(t, namespace, "one", 1)
	client := s.client(t, c.asAdmin(t))
	source := cache.NewListWatchFromClient(client, "combinedtasks", namespace, fields.Everything())
	// The same without a list that is streamed by a watch.
	listing := &cache.ListWatch{ListWithContextFunc: source.ListWithContextFunc, WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		if options.SendInitialEvents != nil {
			return nil, errors.New("not this way")
		}
		return source.WatchFuncWithContext(ctx, options)
	}}
	ctx, cancel := context.WithCancel(t.Context())
	running := make(chan struct{}, 2)
	var informers []cache.SharedIndexInformer
	for _, lw := range []cache.ListerWatcher{source, listing} {
		informer := cache.NewSharedIndexInformer(lw, &searchv1.CombinedTask{}, 0, nil)
		informers = append(informers, informer)
		go func() { informer.RunWithContext(ctx); running <- struct{}{} }()
	}
	defer func() { cancel(); <-running; <-running }()

	know := func(want ...string) {
		t.Helper()
		for i, informer := range informers {
			eventually(t, fmt.Sprintf("informer %d knows %v", i, want), func() error {
				var got []string
				for _, object := range informer.GetStore().List() {
					combined := object.(*searchv1.CombinedTask)
					got = append(got, fmt.Sprintf("%s+%d", combined.Name, combined.Status.EventsCount))
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					return fmt.Errorf("it knows %v", got)
				}
				return nil
			})
		}
	}
	know("one+0")
	two := c.createTask(t, namespace, "two", 2)
	c.createEvent(t, two, "e1")
	know("one+0", "two+1")
	c.deleteTask(t, namespace, "one")
	know("two+1")

	// Another process answers at the same address and knows other numbers.
	address := s.address
	s.stop()
	c.createEvent(t, two, "e2")
	options := c.options(t)
	options.Listen = listenAgain(address)
	c.run(t, options)
	c.createTask(t, namespace, "three", 3)
	know("three+0", "two+2")
}

func testPages(t *testing.T, c control) {
	s := c.run(t, c.options(t))
	namespace := c.namespace(t)
	for i := range 7 {
		c.createTask(t, namespace, fmt.Sprint("t", i), int32(i%3))
	}
	transport := c.asAdmin(t)
	page := func(query string) (list searchv1.CombinedTaskList) {
		t.Helper()
		got := s.get(t, transport, in(namespace)+query)
		if err := expectCode(query, got, 200); err != nil {
			t.Fatal(err)
		}
		must(t, json.Unmarshal([]byte(got.body), &list))
		return list
	}
	eventually(t, "the join has all Tasks", func() error {
		if got := len(page("").Items); got != 7 {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
	first := page("?limit=3")
	if len(first.Items) != 3 || *first.RemainingItemCount != 4 {
		t.Fatalf("the first page: %d objects, rest %v", len(first.Items), first.RemainingItemCount)
	}
	c.deleteTask(t, namespace, "t3")
	c.deleteTask(t, namespace, "t6")
	eventually(t, "the join has noticed", func() error {
		if got := len(page("").Items); got != 5 {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
	second := page("?limit=3&continue=" + first.Continue)
	third := page("?limit=3&continue=" + second.Continue)
	var names []string
	for _, item := range slices.Concat(first.Items, second.Items, third.Items) {
		names = append(names, item.Name)
	}
	if got := strings.Join(names, " "); got != "t0 t1 t2 t3 t4 t5 t6" || third.Continue != "" {
		t.Errorf("pages show %s", got)
	}
	selected := page("?fieldSelector=spec.priority%3D1")
	if len(selected.Items) != 2 {
		t.Errorf("selected are %+v", selected.Items)
	}
	// A token of another server is expired, and the rest can still be had.
	s.stop()
	s = c.run(t, c.options(t))
	got := s.get(t, transport, in(namespace)+"?limit=3&continue="+first.Continue)
	if got.code != 410 || got.status.Continue == "" {
		t.Fatalf("a token of another server: %+v", got.status)
	}
	if rest := page("?continue=" + got.status.Continue); len(rest.Items) != 2 || rest.Items[0].Name != "t4" {
		t.Errorf("the rest is %+v", rest.Items)
	}
}
