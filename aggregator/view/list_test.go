package view

import (
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type listOptions = metainternalversion.ListOptions

func TestBeforePopulateEverythingIsUnavailable(t *testing.T) {
	f := newView(t, Options{})
	_, listError := f.List("", &listOptions{})
	_, continueError := f.List("", &listOptions{Continue: token{Version: tokenVersion, Name: "a"}.encode()})
	_, watchError := f.Watch(t.Context(), "", &listOptions{})
	_, _, getError := f.Get(Key{"a", "b"})
	for what, err := range map[string]error{"list": listError, "continue": continueError, "watch": watchError, "get": getError} {
		if !isStatus(err, 503) {
			t.Errorf("%s: got %v, want 503", what, err)
		}
		if seconds, found := apierrors.SuggestsClientDelay(err); !found || seconds < 1 {
			t.Errorf("%s: %v suggests no delay", what, err)
		}
	}
}

func TestAnEmptyListHasAVersion(t *testing.T) {
	f := newView(t, Options{}, []Change{}...)
	page := f.list("", &listOptions{})
	equal(t, "rows", len(page.Rows), 0)
	equal(t, "version", page.ResourceVersion, "3")
	w := f.watch("", &listOptions{ResourceVersion: page.ResourceVersion})
	f.commit(set("a/x", "1"))
	equal(t, "event", next(t, w), "ADDED a/x=1")
}

func TestObjectsCarryTheNumberOfTheirLastChange(t *testing.T) {
	f := newView(t, Options{}, set("a/x", "1"), set("b/y", "1"))
	f.commit(set("a/x", "2"))
	page := f.list("", &listOptions{})
	equal(t, "list", names(page), "a/x=2 b/y=1")
	equal(t, "list version", page.ResourceVersion, "12")
	equal(t, "changed object", page.Rows[0].Number, 12)
	equal(t, "unchanged object", page.Rows[1].Number, 9)
}

func TestListSelects(t *testing.T) {
	f := newView(t, Options{},
		set("a/x", "1", "color=red", "size=3"), set("a/y", "2", "color=blue"), set("b/x", "1"), set("b-c/z", "1", "size=30"))
	for _, test := range []struct{ namespace, labels, fields, want string }{
		{"", "", "", "a/x=1 a/y=2 b/x=1 b-c/z=1"},
		{"b", "", "", "b/x=1"},
		{"c", "", "", ""},
		{"", "color=red", "", "a/x=1"},
		{"", "color!=red", "", "a/y=2 b/x=1 b-c/z=1"},
		{"", "color in (red,blue)", "", "a/x=1 a/y=2"},
		{"", "color notin (red)", "", "a/y=2 b/x=1 b-c/z=1"},
		{"", "!color", "", "b/x=1 b-c/z=1"},
		{"", "color", "", "a/x=1 a/y=2"},
		{"", "size>3", "", "b-c/z=1"},
		{"", "size<30", "", "a/x=1"},
		{"", "", "value=1", "a/x=1 b/x=1 b-c/z=1"},
		{"", "", "value!=1", "a/y=2"},
		{"", "", "metadata.name=x", "a/x=1 b/x=1"},
		{"a", "", "metadata.name=x", "a/x=1"},
		{"a", "", "metadata.name=x,value=2", ""},
		{"", "", "metadata.namespace=b", "b/x=1"},
		{"a", "", "metadata.namespace=b", ""},
		{"", "color=red", "value=2", ""},
	} {
		options := &listOptions{LabelSelector: labelSelector(t, test.labels), FieldSelector: fieldSelector(t, test.fields)}
		got := names(f.list(test.namespace, options))
		if sorted(got) != sorted(test.want) {
			t.Errorf("namespace %q, labels %q, fields %q: got %q, want %q", test.namespace, test.labels, test.fields, got, test.want)
		}
	}
}

func TestPagesAreConsistent(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "old"), set("a/2", "old"), set("a/3", "old"), set("a/4", "old"), set("a/5", "old"), set("b/1", "old"))
	first := f.list("a", &listOptions{Limit: 2})
	equal(t, "first page", names(first), "a/1=old a/2=old")
	equal(t, "remaining", *first.RemainingItemCount, 3)

	f.commit(set("a/3", "new"), gone("a/4"), set("a/0", "new"), set("a/6", "new"))
	second := f.list("a", &listOptions{Limit: 2, Continue: first.Continue})
	equal(t, "second page", names(second), "a/3=old a/4=old")
	equal(t, "remaining", *second.RemainingItemCount, 1)
	equal(t, "version", second.ResourceVersion, first.ResourceVersion)
	again := f.list("a", &listOptions{Limit: 2, Continue: first.Continue})
	equal(t, "second page again", names(again), "a/3=old a/4=old")
	last := f.list("a", &listOptions{Limit: 2, Continue: second.Continue})
	equal(t, "last page", names(last), "a/5=old")
	equal(t, "continue", last.Continue, "")
	if last.RemainingItemCount != nil {
		t.Errorf("the last page tells a rest of %d", *last.RemainingItemCount)
	}
	rest := f.list("a", &listOptions{Continue: first.Continue})
	equal(t, "rest without limit", names(rest), "a/3=old a/4=old a/5=old")
}

func TestPagesOfSelectedObjectsDoNotEndInAnEmptyOne(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "x"), set("a/2", "y"), set("a/3", "x"), set("a/4", "y"))
	options := &listOptions{Limit: 1, FieldSelector: fieldSelector(t, "value=x")}
	first := f.list("", options)
	if first.RemainingItemCount != nil {
		t.Error("the rest of a selection is not known, and was told")
	}
	options.Continue = first.Continue
	second := f.list("", options)
	equal(t, "second page", names(second), "a/3=x")
	equal(t, "continue", second.Continue, "")
}

func TestPagesAreKeptForFiveMinutes(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "old"), set("a/2", "old"), set("a/3", "old"), set("a/4", "old"))
	first := f.list("", &listOptions{Limit: 1})
	f.commit(set("a/2", "new"), gone("a/3"))
	f.clock.Step(5*time.Minute - time.Second)
	equal(t, "just in time", names(f.list("", &listOptions{Limit: 1, Continue: first.Continue})), "a/2=old")

	f.clock.Step(time.Second)
	_, err := f.List("", &listOptions{Limit: 1, Continue: first.Continue})
	if !isStatus(err, 410) || !apierrors.IsResourceExpired(err) {
		t.Fatalf("too late: got %v, want 410 Expired", err)
	}
	inconsistent := err.(apierrors.APIStatus).Status().ListMeta.Continue
	second := f.list("", &listOptions{Limit: 1, Continue: inconsistent})
	equal(t, "inconsistent page", names(second), "a/2=new")
	equal(t, "its version", second.ResourceVersion, f.newest())
	equal(t, "its rest", *second.RemainingItemCount, 1)
	f.commit(set("a/4", "new"))
	equal(t, "the page after it", names(f.list("", &listOptions{Limit: 1, Continue: second.Continue})), "a/4=old")
}

func TestManyPagedListsKeepABoundedNumberOfSnapshots(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "0"), set("a/2", "0"))
	oldest := f.list("", &listOptions{Limit: 1})
	for i := range maxKeptPages {
		f.clock.Step(time.Millisecond)
		f.commit(set("a/1", strconv.Itoa(i)))
		f.list("", &listOptions{Limit: 1})
	}
	equal(t, "snapshots", len(f.pages), maxKeptPages)
	if _, err := f.List("", &listOptions{Continue: oldest.Continue}); !isStatus(err, 410) {
		t.Errorf("the oldest one: got %v, want 410", err)
	}
}

func TestBadContinueTokensAreRefused(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "x"), set("a/2", "x"), set("b/1", "x"))
	good := f.list("a", &listOptions{Limit: 1}).Continue
	for what, test := range map[string]struct{ namespace, token, version string }{
		"no base64":           {"a", "%%%", ""},
		"no JSON":             {"a", "Zm9v", ""},
		"etcd's":              {"a", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", ""},
		"no name":             {"a", token{Version: tokenVersion}.encode(), ""},
		"a negative rest":     {"a", token{Version: tokenVersion, Namespace: "a", Name: "x", Remaining: -1}.encode(), ""},
		"another namespace's": {"b", good, ""},
		"with a version":      {"a", good, "3"},
	} {
		if _, err := f.List(test.namespace, &listOptions{Continue: test.token, ResourceVersion: test.version}); !isStatus(err, 400) {
			t.Errorf("%s: got %v, want 400", what, err)
		}
	}
}

func TestListAtAVersion(t *testing.T) {
	f := newView(t, Options{History: 3}, set("a/1", "0"))
	versions := []string{f.newest()}
	for _, c := range []Change{set("a/1", "1"), set("a/2", "2"), gone("a/1"), set("a/3", "4")} {
		f.commit(c)
		versions = append(versions, f.newest())
	}
	latest := "a/2=2 a/3=4"
	for _, test := range []struct {
		version string
		match   metav1.ResourceVersionMatch
		limit   int64
		want    string // "" is 410
	}{
		{"", "", 0, latest},
		{"0", "", 0, latest},
		{"0", metav1.ResourceVersionMatchNotOlderThan, 0, latest},
		{"0", "", 5, latest},
		{versions[4], metav1.ResourceVersionMatchExact, 0, latest},
		{versions[3], metav1.ResourceVersionMatchExact, 0, "a/2=2"},
		{versions[2], metav1.ResourceVersionMatchExact, 0, "a/1=1 a/2=2"},
		{versions[1], metav1.ResourceVersionMatchExact, 0, "a/1=1"},
		{versions[2], "", 5, "a/1=1 a/2=2"},
		{versions[2], "", 0, latest},
		{versions[2], metav1.ResourceVersionMatchNotOlderThan, 0, latest},
		{versions[2], metav1.ResourceVersionMatchNotOlderThan, 5, latest},
		// No longer held, of another process, of nobody yet.
		{versions[0], metav1.ResourceVersionMatchExact, 0, ""},
		{versions[0], metav1.ResourceVersionMatchNotOlderThan, 0, ""},
		{"10", "", 0, ""},
		{"1000", "", 0, ""},
	} {
		page, err := f.List("", &listOptions{ResourceVersion: test.version, ResourceVersionMatch: test.match, Limit: test.limit})
		if test.want == "" {
			if !isStatus(err, 410) {
				t.Errorf("%+v: got %v, want 410", test, err)
			}
			continue
		}
		must(t, err)
		if got := names(page); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
	if _, err := f.List("", &listOptions{ResourceVersion: "x"}); !isStatus(err, 400) {
		t.Errorf("no number: got %v, want 400", err)
	}
}

func TestPagesOfAnOldVersion(t *testing.T) {
	f := newView(t, Options{}, set("a/1", "old"), set("a/2", "old"), set("a/3", "old"))
	version := f.newest()
	f.commit(set("a/2", "new"), gone("a/3"))
	first := f.list("", &listOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: 1})
	equal(t, "first page", names(first), "a/1=old")
	equal(t, "rest", *first.RemainingItemCount, 2)
	equal(t, "others", names(f.list("", &listOptions{Continue: first.Continue})), "a/2=old a/3=old")
}
