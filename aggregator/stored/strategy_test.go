package stored

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

func now() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

func newStrategy(kind Kind) strategy {
	return strategy{kind: kind, clock: testingclock.NewFakePassiveClock(now())}
}

// valid makes an object of each kind as a user would write it.
func valid() map[kindName]runtime.Object {
	spec := searchv1.StoredTaskSpec{Priority: ptr.To[int32](3), Deadline: metav1.NewTime(now().Add(time.Hour))}
	return map[kindName]runtime.Object{
		"ClusterTask": &searchv1.ClusterTask{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: spec},
		"CustomTask":  &searchv1.CustomTask{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "a"}, Spec: spec},
	}
}

// kindName names a kind in these tests.
type kindName string

func (k kindName) kind() Kind {
	if k == "ClusterTask" {
		return ClusterTask()
	}
	return CustomTask()
}

func each(t *testing.T, test func(*testing.T, strategy, runtime.Object)) {
	for name, object := range valid() {
		t.Run(string(name), func(t *testing.T) { test(t, newStrategy(name.kind()), object) })
	}
}

func TestCreateCompletesAnObject(t *testing.T) {
	each(t, func(t *testing.T, s strategy, object runtime.Object) {
		meta, spec, status, _ := parts(object)
		status.ObservedGeneration = 7
		s.PrepareForCreate(t.Context(), object)
		if spec.TaskState != taskv1.TaskStatePending || meta.Labels[taskv1.LabelPriority] != "3" || meta.Generation != 1 || status.ObservedGeneration != 0 {
			t.Errorf("got %+v", object)
		}
		if errs := s.Validate(t.Context(), object); len(errs) != 0 {
			t.Errorf("it is refused: %v", errs)
		}
	})
}

func TestUpdateCountsChangesOfTheSpecOnly(t *testing.T) {
	each(t, func(t *testing.T, s strategy, old runtime.Object) {
		s.PrepareForCreate(t.Context(), old)
		_, _, oldStatus, _ := parts(old)
		oldStatus.ObservedGeneration = 1
		for what, test := range map[string]struct {
			change func(*metav1.ObjectMeta, *searchv1.StoredTaskSpec, *searchv1.StoredTaskStatus)
			want   int64
		}{
			"nothing": {func(*metav1.ObjectMeta, *searchv1.StoredTaskSpec, *searchv1.StoredTaskStatus) {}, 1},
			"a label": {func(m *metav1.ObjectMeta, _ *searchv1.StoredTaskSpec, _ *searchv1.StoredTaskStatus) { m.Labels = nil }, 1},
			"the status": {func(_ *metav1.ObjectMeta, _ *searchv1.StoredTaskSpec, s *searchv1.StoredTaskStatus) {
				s.ObservedGeneration = 9
			}, 1},
			"generation": {func(m *metav1.ObjectMeta, _ *searchv1.StoredTaskSpec, _ *searchv1.StoredTaskStatus) {
				m.Generation = 50
			}, 1},
			"the details": {func(_ *metav1.ObjectMeta, s *searchv1.StoredTaskSpec, _ *searchv1.StoredTaskStatus) { s.Details = "x" }, 2},
			"a default":   {func(_ *metav1.ObjectMeta, s *searchv1.StoredTaskSpec, _ *searchv1.StoredTaskStatus) { s.TaskState = "" }, 1},
		} {
			changed := old.DeepCopyObject()
			meta, spec, status, _ := parts(changed)
			test.change(meta, spec, status)
			s.PrepareForUpdate(t.Context(), changed, old)
			if meta.Generation != test.want || status.ObservedGeneration != 1 || meta.Labels[taskv1.LabelPriority] != "3" {
				t.Errorf("after a change of %s: %+v", what, changed)
			}
		}
	})
}

func TestTheStatusSubresourceChangesTheStatusOnly(t *testing.T) {
	each(t, func(t *testing.T, s strategy, old runtime.Object) {
		s.PrepareForCreate(t.Context(), old)
		changed := old.DeepCopyObject()
		meta, spec, status, _ := parts(changed)
		meta.Labels, spec.Details, status.ObservedGeneration = map[string]string{"a": "b"}, "x", 5
		statusStrategy{s}.PrepareForUpdate(t.Context(), changed, old)
		if meta.Labels["a"] != "" || spec.Details != "" || status.ObservedGeneration != 5 {
			t.Errorf("got %+v", changed)
		}
	})
}

func TestValidationNamesTheField(t *testing.T) {
	each(t, func(t *testing.T, s strategy, object runtime.Object) {
		for want, breakIt := range map[string]func(*metav1.ObjectMeta, *searchv1.StoredTaskSpec){
			"spec.priority":                func(_ *metav1.ObjectMeta, s *searchv1.StoredTaskSpec) { s.Priority = nil },
			"spec.deadline":                func(_ *metav1.ObjectMeta, s *searchv1.StoredTaskSpec) { s.Deadline = metav1.Time{} },
			"spec.taskState":               func(_ *metav1.ObjectMeta, s *searchv1.StoredTaskSpec) { s.TaskState = "Other" },
			"spec.ttlSecondsAfterFinished": func(_ *metav1.ObjectMeta, s *searchv1.StoredTaskSpec) { s.TTLSecondsAfterFinished = ptr.To[int32](-1) },
			"metadata.name":                func(m *metav1.ObjectMeta, _ *searchv1.StoredTaskSpec) { m.Name = "No_Name" },
		} {
			broken := object.DeepCopyObject()
			meta, spec, _, _ := parts(broken)
			s.PrepareForCreate(t.Context(), broken)
			breakIt(meta, spec)
			errs := s.Validate(t.Context(), broken)
			if len(errs) != 1 || errs[0].Field != want {
				t.Errorf("got %v, want one about %s", errs, want)
			}
			if want == "metadata.name" {
				continue
			}
			if errs := s.ValidateUpdate(t.Context(), broken, object); len(errs) != 1 || errs[0].Field != want {
				t.Errorf("update: got %v, want one about %s", errs, want)
			}
			meta.DeletionTimestamp = ptr.To(metav1.Now())
			if errs := s.ValidateUpdate(t.Context(), broken, object); len(errs) != 0 {
				t.Errorf("what is being deleted is refused: %v", errs)
			}
		}
	})
}

func TestADeadlineInThePastIsWarnedAbout(t *testing.T) {
	each(t, func(t *testing.T, s strategy, object runtime.Object) {
		past := object.DeepCopyObject()
		_, spec, _, _ := parts(past)
		spec.Deadline = metav1.NewTime(now().Add(-time.Hour))
		if len(s.WarningsOnCreate(t.Context(), object)) != 0 || len(s.WarningsOnCreate(t.Context(), past)) != 1 {
			t.Error("on create")
		}
		if len(s.WarningsOnUpdate(t.Context(), past, object)) != 1 || len(s.WarningsOnUpdate(t.Context(), past, past)) != 0 {
			t.Error("on update")
		}
	})
}

func TestSelectorsSeeLabelsAndFields(t *testing.T) {
	for name, object := range valid() {
		kind := name.kind()
		newStrategy(kind).PrepareForCreate(t.Context(), object)
		for text, want := range map[string]bool{
			"spec.priority=3": true, "spec.priority=4": false, "spec.taskState=Pending": true,
			"metadata.name=x": true, "metadata.name!=x": false,
		} {
			selector, err := fields.ParseSelector(text)
			if err != nil {
				t.Fatal(err)
			}
			matches, err := predicateOf(kind, selector).Matches(object)
			if err != nil || matches != want {
				t.Errorf("%s %s: %v %v", name, text, matches, err)
			}
		}
		if _, _, err := kind.FieldLabel("spec.details", "x"); err == nil {
			t.Error("details can be selected by")
		}
		if _, _, err := kind.FieldLabel("metadata.namespace", "x"); (err == nil) != kind.Namespaced {
			t.Errorf("%s: metadata.namespace: %v", name, err)
		}
	}
}

func predicateOf(kind Kind, selector fields.Selector) interface {
	Matches(runtime.Object) (bool, error)
} {
	predicate := kind.predicate(labels.Everything(), selector)
	return &predicate
}
