package view

import (
	"context"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

func TestWatchBegins(t *testing.T) {
	notOlder := metav1.ResourceVersionMatchNotOlderThan
	for name, test := range map[string]struct {
		options listOptions
		back    bool // from the version before the last change
		want    []string
	}{
		"with what is there, without a version": {listOptions{}, false, []string{"ADDED a/1=new", "ADDED a/2=x"}},
		"with what is there, from 0":            {listOptions{ResourceVersion: "0", AllowWatchBookmarks: true}, false, []string{"ADDED a/1=new", "ADDED a/2=x"}},
		"after a version":                       {listOptions{}, true, []string{"MODIFIED a/1=new"}},
		"with a mark at the end, if asked for": {
			listOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: notOlder, AllowWatchBookmarks: true}, false,
			[]string{"ADDED a/1=new", "ADDED a/2=x", "BOOKMARK initial-events-end"}},
		"with what is there, not older than a version": {
			listOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: notOlder, AllowWatchBookmarks: true}, true,
			[]string{"ADDED a/1=new", "ADDED a/2=x", "BOOKMARK initial-events-end"}},
		"without a mark where bookmarks are not allowed": {
			listOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: notOlder}, false, []string{"ADDED a/1=new", "ADDED a/2=x"}},
		"with nothing": {listOptions{SendInitialEvents: ptr.To(false), ResourceVersionMatch: notOlder}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newView(t, Options{}, set("a/1", "old"), set("a/2", "x"))
			before := f.newest()
			f.commit(set("a/1", "new"))
			if test.back {
				test.options.ResourceVersion = before
			}
			w := f.watch("", &test.options)
			for _, want := range test.want {
				text, version := nextWithVersion(t, w)
				equal(t, "event", text, want)
				if text == "BOOKMARK initial-events-end" {
					equal(t, "version of the mark", version, f.newest())
				}
			}
			quiet(f, w, set("a/3", "marker"), "ADDED a/3=marker")
		})
	}
}

func TestWatchOfAnUnknownVersionIsExpired(t *testing.T) {
	f := newView(t, Options{History: 2}, set("a/1", "0"))
	tooOld := f.newest()
	for i := range 3 {
		f.commit(set("a/1", strconv.Itoa(i)))
	}
	for what, version := range map[string]string{"too old": tooOld, "another process's": "10", "of the future": "1000"} {
		for _, options := range []*listOptions{
			{ResourceVersion: version},
			{ResourceVersion: version, SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true},
		} {
			w := f.watch("", options)
			if got := next(t, w); got != "ERROR 410" {
				t.Errorf("%s: got %s", what, got)
			}
			if got := next(t, w); got != "END" {
				t.Errorf("%s: got %s after the error", what, got)
			}
		}
	}
	if _, err := f.Watch(t.Context(), "", &listOptions{ResourceVersion: "x"}); !isStatus(err, 400) {
		t.Errorf("no number: got %v, want 400", err)
	}
}

func TestObjectsEnterAndLeaveASelection(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "x", "color=red"), set("a/2", "x", "color=blue"), set("b/1", "x", "color=red"))
	start := f.newest()
	byLabel := f.watch("a", &listOptions{ResourceVersion: start, LabelSelector: labelSelector(t, "color=red")})
	byField := f.watch("", &listOptions{ResourceVersion: start, FieldSelector: fieldSelector(t, "value=y")})
	byName := f.watch("a", &listOptions{ResourceVersion: start, FieldSelector: fieldSelector(t, "metadata.name=2")})

	f.commit(set("a/1", "y", "color=green"))
	left := f.newest()
	f.commit(set("a/2", "y", "color=red"))
	f.commit(set("a/2", "z", "color=red"))
	f.commit(gone("a/2"), gone("b/1"), gone("a/1"))

	text, version := nextWithVersion(t, byLabel)
	equal(t, "leaves by its label", text, "DELETED a/1=x")
	equal(t, "with the number of the change", version, left)
	equal(t, "enters by its label", next(t, byLabel), "ADDED a/2=y")
	equal(t, "stays", next(t, byLabel), "MODIFIED a/2=z")
	equal(t, "is deleted", next(t, byLabel), "DELETED a/2=z")

	equal(t, "enters by its field", next(t, byField), "ADDED a/1=y")
	equal(t, "enters by its field", next(t, byField), "ADDED a/2=y")
	equal(t, "leaves by its field", next(t, byField), "DELETED a/2=y")
	equal(t, "is deleted", next(t, byField), "DELETED a/1=y")

	equal(t, "by name", next(t, byName), "MODIFIED a/2=y")
	equal(t, "by name", next(t, byName), "MODIFIED a/2=z")
	equal(t, "by name", next(t, byName), "DELETED a/2=z")
	quiet(f, byLabel, set("a/9", "marker", "color=red"), "ADDED a/9=marker")
	quiet(f, byField, set("c/9", "y"), "ADDED c/9=y")
	quiet(f, byName, set("a/2", "marker"), "ADDED a/2=marker")
}

func TestDeletionsOfWhatIsNotThereAreNoChange(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "x"))
	w := f.watch("", &listOptions{ResourceVersion: f.newest()})
	f.commit(gone("a/2"))
	quiet(f, w, set("a/3", "marker"), "ADDED a/3=marker")
}

func TestBookmarksTellHowFarTheWatchIs(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "x"))
	start := f.newest()
	f.commit(set("b/1", "not selected"))
	w := f.watch("a", &listOptions{ResourceVersion: start, AllowWatchBookmarks: true})
	<-f.timers
	f.clock.Step(bookmarkEvery)
	text, version := nextWithVersion(t, w)
	equal(t, "event", text, "BOOKMARK")
	equal(t, "version", version, f.newest())

	again := f.watch("a", &listOptions{ResourceVersion: version})
	f.commit(set("a/1", "y"))
	equal(t, "from the bookmark on", next(t, again), "MODIFIED a/1=y")
}

func TestABookmarkComesBeforeTheWatchEnds(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "x"))
	ctx := deadlineContext{t.Context(), f.clock.Now().Add(30 * time.Second)}
	w, err := f.Watch(ctx, "", &listOptions{ResourceVersion: f.newest(), AllowWatchBookmarks: true})
	must(t, err)
	defer w.Stop()
	<-f.timers
	f.clock.Step(30*time.Second - bookmarkBeforeEnd)
	equal(t, "event", next(t, w), "BOOKMARK")
}

// deadlineContext has a deadline on the fake clock.
type deadlineContext struct {
	context.Context
	deadline time.Time
}

func (d deadlineContext) Deadline() (time.Time, bool) { return d.deadline, true }

func TestWithoutAskingThereAreNoBookmarks(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "x"))
	w := f.watch("", &listOptions{ResourceVersion: f.newest()})
	<-f.timers
	f.clock.Step(bookmarkEvery)
	quiet(f, w, set("a/2", "marker"), "ADDED a/2=marker")
}

func TestASlowWatchIsDroppedAndHoldsUpNobody(t *testing.T) {
	f := newView(t, Options{History: 100}, set("a/1", "x"))
	slow := f.watch("", &listOptions{ResourceVersion: f.newest()})
	fast := f.watch("", &listOptions{ResourceVersion: f.newest()})
	total := 1000
	for i := range total {
		f.commit(set("a/1", strconv.Itoa(i))) // would block if anybody waited for slow
		equal(t, "the fast watch", next(t, fast), "MODIFIED a/1="+strconv.Itoa(i))
	}
	seen := 0
	for {
		text := next(t, slow)
		if text == "ERROR 410" {
			break
		}
		equal(t, "the slow watch", text, "MODIFIED a/1="+strconv.Itoa(seen))
		seen++
	}
	if seen == total {
		t.Error("the slow watch was never behind; the test shows nothing")
	}
	equal(t, "after the error", next(t, slow), "END")
}

func TestAWatchEndsWithItsContextStopAndClose(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "x"))
	ctx, cancel := context.WithCancel(t.Context())
	byContext, err := f.Watch(ctx, "", &listOptions{ResourceVersion: f.newest()})
	must(t, err)
	byStop := f.watch("", &listOptions{ResourceVersion: f.newest()})
	cancel()
	byStop.Stop()
	byStop.Stop()
	for what, w := range map[string]watch.Interface{"context": byContext, "stop": byStop} {
		if got := next(t, w); got != "END" {
			t.Errorf("%s: got %s", what, got)
		}
	}

	other := New(f.options)
	must(t, other.Populate(t.Context(), []Item{set("a/1", "x").Item}))
	// A watch whose client takes nothing is ended too.
	w, err := other.Watch(t.Context(), "", &listOptions{})
	must(t, err)
	other.Close()
	for got := next(t, w); got != "END"; got = next(t, w) {
		equal(t, "before the end", got, "ADDED a/1=x")
	}
	if _, err := other.Watch(t.Context(), "", &listOptions{}); !isStatus(err, 503) {
		t.Errorf("after Close: got %v, want 503", err)
	}
}

func TestWaitReturnsWhenTheObjectIsAsWanted(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "0"))
	done := make(chan error, 1)
	asked := make(chan struct{}, 100)
	go func() {
		done <- f.Wait(t.Context(), Key{"a", "2"}, func(row *Row) bool {
			asked <- struct{}{}
			return row != nil && row.Item.(*thing).value == "y"
		})
	}()
	<-asked
	f.commit(set("a/2", "x"))
	<-asked
	f.commit(set("a/2", "y"))
	must(t, <-done)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Wait(ctx, Key{"a", "9"}, func(*Row) bool { return false }); err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
