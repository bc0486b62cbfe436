package view

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// thing is the item of these tests: its value is what changes.
type thing struct {
	key    Key
	labels labels.Set
	value  string
}

func (t *thing) Key() Key              { return t.key }
func (t *thing) Labels() labels.Labels { return t.labels }
func (t *thing) Fields() fields.Fields {
	return fields.Set{"metadata.name": t.key.Name, "metadata.namespace": t.key.Namespace, "value": t.value}
}

func (t *thing) Object(resourceVersion string) runtime.Object {
	object := &metav1.PartialObjectMetadata{}
	object.Namespace, object.Name, object.Labels = t.key.Namespace, t.key.Name, t.labels
	object.ResourceVersion = resourceVersion
	object.Annotations = map[string]string{"value": t.value}
	return object
}

// set makes the change that gives namespace/name this value; its labels are
// key=value words.
func set(name, value string, words ...string) Change {
	key := keyOf(name)
	t := &thing{key: key, value: value, labels: labels.Set{}}
	for _, word := range words {
		k, v, _ := strings.Cut(word, "=")
		t.labels[k] = v
	}
	return Change{Key: key, Item: t}
}

func gone(name string) Change { return Change{Key: keyOf(name)} }

func keyOf(name string) Key {
	namespace, name, _ := strings.Cut(name, "/")
	return Key{namespace, name}
}

// counter hands out every third number, as if other processes had the rest.
type counter struct{ last atomic.Uint64 }

func (c *counter) Next(ctx context.Context) (uint64, error) { return c.last.Add(3), ctx.Err() }

type fixture struct {
	*View
	t     *testing.T
	clock *testingclock.FakeClock
	// timers gets a value when a watch that is up to date begins to wait for
	// its first bookmark.
	timers chan struct{}
}

// timerClock tells when a timer is made.
type timerClock struct {
	*testingclock.FakeClock
	timers chan struct{}
}

func (c timerClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	select {
	case c.timers <- struct{}{}:
	default:
	}
	return timer
}

func newView(t *testing.T, options Options, populate ...Change) fixture {
	t.Helper()
	clock := testingclock.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	timers := make(chan struct{}, 100)
	options.Clock = timerClock{clock, timers}
	if options.Numbers == nil {
		options.Numbers = &counter{}
	}
	options.Resource = schema.GroupResource{Group: "example.com", Resource: "things"}
	options.New = func() runtime.Object { return &metav1.PartialObjectMetadata{} }
	v := New(options)
	t.Cleanup(v.Close)
	f := fixture{View: v, t: t, clock: clock, timers: timers}
	if populate != nil {
		var items []Item
		for _, c := range populate {
			items = append(items, c.Item)
		}
		must(t, v.Populate(t.Context(), items))
	}
	return f
}

func (f fixture) commit(changes ...Change) {
	f.t.Helper()
	must(f.t, f.Commit(f.t.Context(), changes...))
}

// newest is the resource version of a list.
func (f fixture) newest() string {
	f.t.Helper()
	return f.list("", &metainternalversion.ListOptions{Limit: 1}).ResourceVersion
}

func (f fixture) list(namespace string, options *metainternalversion.ListOptions) *Page {
	f.t.Helper()
	page, err := f.List(namespace, options)
	must(f.t, err)
	return page
}

func (f fixture) watch(namespace string, options *metainternalversion.ListOptions) watch.Interface {
	f.t.Helper()
	w, err := f.Watch(f.t.Context(), namespace, options)
	must(f.t, err)
	f.t.Cleanup(w.Stop)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// names writes a page as "namespace/name=value" words.
func names(page *Page) string {
	var words []string
	for _, row := range page.Rows {
		words = append(words, describe(row.Object()))
	}
	return strings.Join(words, " ")
}

func describe(object runtime.Object) string {
	thing := object.(*metav1.PartialObjectMetadata)
	return thing.Namespace + "/" + thing.Name + "=" + thing.Annotations["value"]
}

// next takes one event, written as "TYPE namespace/name=value", "BOOKMARK",
// "BOOKMARK initial-events-end", "ERROR 410" or "END".
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	text, _ := nextWithVersion(t, w)
	return text
}

func nextWithVersion(t *testing.T, w watch.Interface) (text, resourceVersion string) {
	t.Helper()
	select {
	case event, open := <-w.ResultChan():
		if !open {
			return "END", ""
		}
		return eventText(event)
	case <-time.After(patience):
		t.Fatalf("no event within %s", patience)
		return "", ""
	}
}

func eventText(event watch.Event) (text, resourceVersion string) {
	if status, ok := event.Object.(*metav1.Status); ok {
		if status.Code == 410 && status.Reason == metav1.StatusReasonExpired {
			return "ERROR 410", ""
		}
		return "ERROR " + status.Message, ""
	}
	object := event.Object.(*metav1.PartialObjectMetadata)
	if event.Type == watch.Bookmark {
		if object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			return "BOOKMARK initial-events-end", object.ResourceVersion
		}
		return "BOOKMARK", object.ResourceVersion
	}
	return string(event.Type) + " " + describe(object), object.ResourceVersion
}

// quiet checks that a watch has nothing to say about what was committed so
// far, by committing something that it does see.
func quiet(f fixture, w watch.Interface, marker Change, want string) {
	f.t.Helper()
	f.commit(marker)
	equal(f.t, "next event", next(f.t, w), want)
}

func isStatus(err error, code int32) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == code
}

func labelSelector(t *testing.T, text string) labels.Selector {
	t.Helper()
	selector, err := labels.Parse(text)
	must(t, err)
	return selector
}

func fieldSelector(t *testing.T, text string) fields.Selector {
	t.Helper()
	selector, err := fields.ParseSelector(text)
	must(t, err)
	return selector
}

// sorted sorts the words of a text, where the order is not the point.
func sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}
