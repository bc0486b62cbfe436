package combinedtask

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

func TestNothingIsServedUntilBothHalvesAreKnown(t *testing.T) {
	for name, feed := range map[string]func(fixture){
		"only Tasks":  func(f fixture) { must(t, f.tasks.Replace(objects(task("a", "x", "u1", 1)), "")) },
		"only Events": func(f fixture) { must(t, f.events.Replace(objects(taskEvent("a", "e", "u1", 1)), "")) },
		"single objects of both": func(f fixture) {
			must(t, f.tasks.Add(task("a", "x", "u1", 1)))
			must(t, f.events.Add(taskEvent("a", "e", "u1", 1)))
		},
	} {
		f := newFixture(t, 0)
		feed(f)
		if _, err := f.view.List("", &metainternalversion.ListOptions{}); f.join.Synced() || err == nil {
			t.Errorf("%s: synced %v, list error %v", name, f.join.Synced(), err)
		}
	}

	f := newFixture(t, 0)
	must(t, f.tasks.Replace(objects(task("a", "x", "u1", 1)), ""))
	must(t, f.events.Replace(objects(taskEvent("a", "e", "u1", 1)), ""))
	f.expect("both", "a/x(u1)@1: e")
}

func TestEventsAndTasksArriveInAnyOrder(t *testing.T) {
	f := synced(t, 0)
	w := f.watchFromNow()
	must(t, f.events.Add(taskEvent("a", "early", "u1", 1)))
	f.expectQuiet(w) // an Event about nothing that is known
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	expectNext(t, w, "ADDED a/x(u1)@1: early")
	must(t, f.events.Add(taskEvent("a", "late", "u1", 2)))
	expectNext(t, w, "MODIFIED a/x(u1)@1: early late")
	must(t, f.tasks.Update(task("a", "x", "u1", 5)))
	expectNext(t, w, "MODIFIED a/x(u1)@5: early late")
}

func TestAnEventThatChangesOrExpiresModifiesItsTask(t *testing.T) {
	f := synced(t, 0)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	must(t, f.events.Add(taskEvent("a", "e1", "u1", 1)))
	must(t, f.events.Add(taskEvent("a", "e2", "u1", 2)))
	w := f.watchFromNow()
	must(t, f.events.Update(taskEvent("a", "e1", "u1", 3))) // seen once more
	expectNext(t, w, "MODIFIED a/x(u1)@1: e2 e1")
	must(t, f.events.Delete(taskEvent("a", "e2", "u1", 2)))
	expectNext(t, w, "MODIFIED a/x(u1)@1: e1")
	must(t, f.events.Delete(taskEvent("a", "e1", "u1", 3)))
	expectNext(t, w, "MODIFIED a/x(u1)@1:")
}

func TestAnEventThatIsAboutAnotherTaskNowModifiesBoth(t *testing.T) {
	f := synced(t, 0)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	must(t, f.tasks.Add(task("a", "y", "u2", 1)))
	must(t, f.events.Add(taskEvent("a", "e", "u1", 1)))
	w := f.watchFromNow()
	must(t, f.events.Update(taskEvent("a", "e", "u2", 2)))
	expectNext(t, w, "MODIFIED a/x(u1)@1:", "MODIFIED a/y(u2)@1: e")
}

func TestEventsOfATaskOfTheSameNameDoNotMix(t *testing.T) {
	f := synced(t, 0)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	must(t, f.events.Add(taskEvent("a", "old", "u1", 1)))
	w := f.watchFromNow()
	must(t, f.tasks.Delete(task("a", "x", "u1", 2)))
	must(t, f.tasks.Add(task("a", "x", "u2", 3)))
	must(t, f.events.Add(taskEvent("a", "new", "u2", 2)))
	expectNext(t, w, "DELETED a/x(u1)@1: old")
	expectNext(t, w, "ADDED a/x(u2)@3:")
	expectNext(t, w, "MODIFIED a/x(u2)@3: new")
}

func TestAnUpdateWithAnotherUIDIsADeletionAndAnAddition(t *testing.T) {
	f := synced(t, 0)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	must(t, f.events.Add(taskEvent("a", "old", "u1", 1)))
	for _, update := range []func(*taskv1.Task) error{
		func(task *taskv1.Task) error { return f.tasks.Update(task) },
		func(task *taskv1.Task) error { return f.tasks.Replace(objects(task), "") },
	} {
		w := f.watchFromNow()
		must(t, update(task("a", "x", "u2", 5)))
		expectNext(t, w, "DELETED a/x(u1)@1: old")
		expectNext(t, w, "ADDED a/x(u2)@5:")
		must(t, update(task("a", "x", "u1", 1)))
		expectNext(t, w, "DELETED a/x(u2)@5:")
		expectNext(t, w, "ADDED a/x(u1)@1: old")
		f.expectQuiet(w)
	}
}

func TestEventsOfAnotherNamespaceAreNotShown(t *testing.T) {
	f := synced(t, 0)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	must(t, f.events.Add(taskEvent("b", "foreign", "u1", 1)))
	f.expect("a foreign Event", "a/x(u1)@1:")
}

func TestARelistOfWhatIsKnownChangesNothing(t *testing.T) {
	f := synced(t, 0)
	tasks := func() []any {
		return objects(task("a", "x", "u1", 1), task("a", "y", "u2", 1), task("b", "x", "u3", 1))
	}
	events := func() []any {
		return objects(taskEvent("a", "e1", "u1", 1), taskEvent("a", "e2", "u1", 2), taskEvent("a", "e3", "u2", 1))
	}
	must(t, f.tasks.Replace(tasks(), ""))
	must(t, f.events.Replace(events(), ""))
	w := f.watchFromNow()
	must(t, f.tasks.Replace(tasks(), ""))
	must(t, f.events.Replace(events(), ""))
	f.expectQuiet(w)
}

func TestARelistShowsWhatWasMissed(t *testing.T) {
	f := synced(t, 0)
	must(t, f.tasks.Replace(objects(task("a", "gone", "u1", 1), task("a", "kept", "u2", 1), task("a", "changed", "u3", 1)), ""))
	must(t, f.events.Replace(objects(taskEvent("a", "gone", "u2", 1), taskEvent("a", "kept", "u2", 2)), ""))
	w := f.watchFromNow()
	must(t, f.tasks.Replace(objects(task("a", "kept", "u2", 1), task("a", "changed", "u3", 7), task("a", "new", "u4", 8)), ""))
	expectNext(t, w, "DELETED a/gone(u1)@1:", "MODIFIED a/changed(u3)@7:", "ADDED a/new(u4)@8:")
	must(t, f.events.Replace(objects(taskEvent("a", "kept", "u2", 2), taskEvent("a", "new", "u4", 3)), ""))
	expectNext(t, w, "MODIFIED a/kept(u2)@1: kept", "MODIFIED a/new(u4)@8: new")
	f.expectQuiet(w)
}

func TestOnlyTheNewestEventsAreShownAndKept(t *testing.T) {
	f := synced(t, 3)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	for second, name := range []string{"e0", "e1", "e2", "e3", "e4"} {
		must(t, f.events.Add(taskEvent("a", name, "u1", second)))
	}
	f.expect("five", "a/x(u1)@1: e2 e3 e4 +2")
	must(t, f.events.Add(taskEvent("a", "late", "u1", 1))) // arrives last, is no news
	f.expect("an old one", "a/x(u1)@1: e2 e3 e4 +3")
	bodies := 0
	for _, e := range f.join.events {
		if e.body != nil {
			bodies++
		}
	}
	if bodies != 3 {
		t.Errorf("%d Events are kept whole, want 3", bodies)
	}
	// The oldest expire first.
	for second, name := range []string{"e0", "e1"} {
		must(t, f.events.Delete(taskEvent("a", name, "u1", second)))
	}
	must(t, f.events.Delete(taskEvent("a", "late", "u1", 1)))
	f.expect("three", "a/x(u1)@1: e2 e3 e4")
}

func TestNothingIsLeftOfWhatIsGone(t *testing.T) {
	f := synced(t, 2)
	for second, name := range []string{"e0", "e1", "e2", "e3"} {
		must(t, f.events.Add(taskEvent("a", name, "u1", second)))
	}
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	must(t, f.tasks.Delete(task("a", "x", "u1", 1)))
	must(t, f.events.Replace(nil, ""))
	j := f.join
	if len(j.tasks)+len(j.byUID)+len(j.items)+len(j.times)+len(j.events) != 0 {
		t.Errorf("left: %v %v %v %v %v", j.tasks, j.byUID, j.items, j.times, j.events)
	}
}

func TestManagedFieldsAndLastAppliedAreDropped(t *testing.T) {
	f := synced(t, 0)
	x := task("a", "x", "u1", 1)
	x.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	x.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "mine": "kept"}
	e := taskEvent("a", "e", "u1", 1)
	e.ManagedFields = x.ManagedFields
	e.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	must(t, f.tasks.Add(x))
	must(t, f.events.Add(e))
	combined := f.object("a", "x")
	event := combined.Status.Events[0]
	if combined.ManagedFields != nil || event.ManagedFields != nil || event.Annotations != nil {
		t.Errorf("not dropped: %v, %v", combined.ObjectMeta, event.ObjectMeta)
	}
	if len(combined.Annotations) != 1 || combined.Annotations["mine"] != "kept" {
		t.Errorf("annotations %v", combined.Annotations)
	}
}

func (f fixture) object(namespace, name string) *searchv1.CombinedTask {
	f.t.Helper()
	row, found, err := f.view.Get(keyOf(task(namespace, name, "", 0)))
	must(f.t, err)
	if !found {
		f.t.Fatalf("there is no %s/%s", namespace, name)
	}
	return row.Object().(*searchv1.CombinedTask)
}

func TestObjectsMayBeWrittenToByTheirReaders(t *testing.T) {
	f := synced(t, 0)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	must(t, f.events.Add(taskEvent("a", "e", "u1", 1)))
	first := f.object("a", "x")
	// What encoders and list builders do.
	first.Kind, first.APIVersion, first.ResourceVersion = "CombinedTask", "v1", "other"
	first.Status.Events[0].Kind, first.Status.Events[0].Name = "Event", "changed"
	second := f.object("a", "x")
	if second.Kind != "" || second.ResourceVersion == "other" || second.Status.Events[0].Kind != "" || second.Status.Events[0].Name != "e" {
		t.Errorf("a reader's writing shows: %+v", second)
	}
}

func TestEventsAreOrderedByWhenTheyWereLastSeen(t *testing.T) {
	at := time.Unix(1000, 0)
	seconds := func(s int) metav1.Time { return metav1.NewTime(at.Add(time.Duration(s) * time.Second)) }
	micros := func(ms int) metav1.MicroTime {
		return metav1.NewMicroTime(at.Add(time.Duration(ms) * time.Millisecond))
	}
	f := synced(t, 0)
	must(t, f.tasks.Add(task("a", "x", "u1", 1)))
	for _, e := range []struct {
		name    string
		version string
		fill    func(*corev1.Event)
	}{
		{"h-series", "10", func(e *corev1.Event) {
			e.EventTime = micros(0)
			e.Series = &corev1.EventSeries{LastObservedTime: micros(60_000)}
		}},
		{"g-last", "11", func(e *corev1.Event) { e.FirstTimestamp, e.LastTimestamp = seconds(0), seconds(50) }},
		{"f-first", "12", func(e *corev1.Event) { e.FirstTimestamp = seconds(40) }},
		{"e-created", "13", func(e *corev1.Event) { e.CreationTimestamp = seconds(30) }},
		// The same second: fractions tell, then versions as numbers, then names.
		{"d-fraction", "14", func(e *corev1.Event) { e.LastTimestamp, e.EventTime = seconds(20), micros(20_700) }},
		{"b-later", "100", func(e *corev1.Event) { e.LastTimestamp, e.EventTime = seconds(20), micros(20_100) }},
		{"c-earlier", "99", func(e *corev1.Event) { e.LastTimestamp, e.EventTime = seconds(20), micros(20_100) }},
		{"a-name", "", func(e *corev1.Event) { e.LastTimestamp = seconds(10) }},
		{"b-name", "", func(e *corev1.Event) { e.LastTimestamp = seconds(10) }},
	} {
		event := taskEvent("a", e.name, "u1", 0)
		event.LastTimestamp, event.ResourceVersion = metav1.Time{}, e.version
		e.fill(event)
		must(t, f.events.Add(event))
	}
	f.expect("order", "a/x(u1)@1: a-name b-name c-earlier b-later d-fraction e-created f-first g-last h-series")
}

func TestOtherTypesAreRefused(t *testing.T) {
	f := synced(t, 0)
	for _, store := range []interface {
		Add(any) error
		Delete(any) error
		Replace([]any, string) error
	}{f.tasks, f.events} {
		if store.Add(&corev1.Pod{}) == nil || store.Delete(&corev1.Pod{}) == nil || store.Replace(objects(&corev1.Pod{}), "") == nil {
			t.Error("a Pod is accepted")
		}
	}
}
