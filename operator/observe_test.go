package operator

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// newTask is a pending Task of generation 1, an hour before its deadline, that
// nobody has observed.
func newTask() *taskv1.Task {
	return &taskv1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "paint", UID: "uid-1", Generation: 1},
		Spec: taskv1.TaskSpec{
			Priority:  3,
			Deadline:  metav1.Time{Time: noon.Add(time.Hour)},
			TaskState: taskv1.TaskStatePending,
		},
	}
}

// settle stores what an observation says, and returns the transitions' names.
func settle(task *taskv1.Task, now time.Time) []string {
	seen := observe(task, now)
	task.Status = seen.status
	return names(seen)
}

func names(seen observation) []string {
	var names []string
	for _, t := range seen.transitions {
		names = append(names, t.name)
	}
	return names
}

func finish(task *taskv1.Task) { task.Generation++; task.Spec.TaskState = taskv1.TaskStateFinished }
func reopen(task *taskv1.Task) { task.Generation++; task.Spec.TaskState = taskv1.TaskStatePending }
func edit(task *taskv1.Task)   { task.Generation++ }
func postpone(task *taskv1.Task) {
	task.Generation++
	task.Spec.Deadline.Time = noon.Add(24 * time.Hour)
}

func TestTransitionsAreAnnouncedOnce(t *testing.T) {
	type step struct {
		change func(*taskv1.Task)
		at     time.Duration // after noon
		want   []string
	}
	tests := map[string][]step{
		"created": {
			{want: []string{"created"}},
			{},
		},
		"edited twice": {
			{want: []string{"created"}},
			{change: edit, want: []string{"updated.2"}},
			{change: edit, want: []string{"updated.3"}},
			{},
		},
		"edited before it was seen": {
			{change: edit, want: []string{"created"}},
			{},
		},
		"finished": {
			{want: []string{"created"}},
			{change: finish, want: []string{"finished.1"}},
			{},
			{change: edit, want: []string{"updated.3"}},
		},
		"created finished": {
			{change: finish, want: []string{"created", "finished.0"}},
			{},
		},
		"finished, opened and finished again": {
			{want: []string{"created"}},
			{change: finish, want: []string{"finished.1"}},
			{change: reopen, want: []string{"updated.3"}},
			{change: finish, want: []string{"finished.3"}},
			{},
		},
		"overdue by the clock alone": {
			{want: []string{"created"}},
			{at: time.Hour - time.Second},
			{at: time.Hour, want: []string{"overdue.1"}},
			{at: 2 * time.Hour},
		},
		"created overdue": {
			{at: 2 * time.Hour, want: []string{"created", "overdue.0"}},
			{at: 2 * time.Hour},
		},
		"edited while overdue": {
			{want: []string{"created"}},
			{at: 2 * time.Hour, want: []string{"overdue.1"}},
			{at: 2 * time.Hour, change: edit, want: []string{"updated.2"}},
		},
		"overdue, postponed and overdue again": {
			{want: []string{"created"}},
			{at: 2 * time.Hour, want: []string{"overdue.1"}},
			{at: 2 * time.Hour, change: postpone, want: []string{"updated.2"}},
			{at: 24 * time.Hour, want: []string{"overdue.2"}},
		},
		"finished after the deadline": {
			{want: []string{"created"}},
			{at: 2 * time.Hour, want: []string{"overdue.1"}},
			{at: 2 * time.Hour, change: finish, want: []string{"finished.1"}},
			{at: 3 * time.Hour},
		},
		"opened again after the deadline": {
			{change: finish, want: []string{"created", "finished.0"}},
			{at: 2 * time.Hour, change: reopen, want: []string{"updated.3", "overdue.2"}},
		},
		"overdue while the clock is set back and forth": {
			{want: []string{"created"}},
			{at: time.Hour, want: []string{"overdue.1"}},
			{at: time.Minute},
			{at: 2 * time.Hour},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			task := newTask()
			for i, step := range steps {
				if step.change != nil {
					step.change(task)
				}
				if got := settle(task, noon.Add(step.at)); !slices.Equal(got, step.want) {
					t.Fatalf("step %d announces %v, want %v", i+1, got, step.want)
				}
			}
		})
	}
}

// A crash between Event and status leaves the status behind; what is computed
// next must have the names of the Events that exist.
func TestTransitionsKeepTheirNamesUntilTheStatusAdvances(t *testing.T) {
	tests := map[string]struct {
		before func(*taskv1.Task)
		change func(*taskv1.Task) // while the controller is down
		want   []string           // afterwards
	}{
		"nothing happens meanwhile":       {before: finish, change: func(*taskv1.Task) {}, want: []string{"finished.1"}},
		"a finished Task is edited":       {before: finish, change: edit, want: []string{"finished.1"}},
		"a finished Task is opened again": {before: finish, change: reopen, want: []string{"updated.3"}},
		"an edited Task is edited again":  {before: edit, change: edit, want: []string{"updated.3"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			task := newTask()
			settle(task, noon)
			test.before(task)
			observe(task, noon) // its Events are stored, its status is lost
			test.change(task)
			if got := settle(task, noon); !slices.Equal(got, test.want) {
				t.Errorf("announces %v, want %v", got, test.want)
			}
		})
	}
}

func TestASettledTaskHasNothingToWrite(t *testing.T) {
	for name, change := range map[string]func(*taskv1.Task){
		"pending":  func(*taskv1.Task) {},
		"finished": finish,
		"overdue":  func(task *taskv1.Task) { task.Spec.Deadline.Time = noon.Add(-time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			task := newTask()
			change(task)
			settle(task, noon)
			seen := observe(task, noon.Add(30*time.Minute))
			if len(seen.transitions) > 0 || !reflect.DeepEqual(seen.status, task.Status) {
				t.Errorf("announces %v and changes the status from %+v to %+v", names(seen), task.Status, seen.status)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	task := newTask()
	settle(task, noon)
	expectCondition(t, task, taskv1.ConditionReady, metav1.ConditionTrue, taskv1.ReasonObserved, noon, 1)
	expectCondition(t, task, taskv1.ConditionOverdue, metav1.ConditionFalse, taskv1.ReasonDeadlineAhead, noon, 1)

	edit(task)
	settle(task, noon.Add(10*time.Minute))
	expectCondition(t, task, taskv1.ConditionReady, metav1.ConditionTrue, taskv1.ReasonObserved, noon, 2)

	late := noon.Add(90 * time.Minute)
	settle(task, late)
	expectCondition(t, task, taskv1.ConditionOverdue, metav1.ConditionTrue, taskv1.ReasonDeadlinePassed, late, 2)

	finish(task)
	later := late.Add(time.Hour)
	settle(task, later)
	expectCondition(t, task, taskv1.ConditionOverdue, metav1.ConditionFalse, taskv1.ReasonFinished, later, 3)
	expectCondition(t, task, taskv1.ConditionReady, metav1.ConditionTrue, taskv1.ReasonObserved, noon, 3)
	if task.Status.FinishedAt == nil || !task.Status.FinishedAt.Time.Equal(later) {
		t.Errorf("finishedAt is %v, want %v", task.Status.FinishedAt, later)
	}

	reopen(task)
	settle(task, later)
	if task.Status.FinishedAt != nil {
		t.Errorf("an open Task has finishedAt %v", task.Status.FinishedAt)
	}
}

func expectCondition(t *testing.T, task *taskv1.Task, kind string, status metav1.ConditionStatus, reason string, since time.Time, generation int64) {
	t.Helper()
	condition := meta.FindStatusCondition(task.Status.Conditions, kind)
	if condition == nil {
		t.Fatalf("there is no condition %s", kind)
	}
	if condition.Status != status || condition.Reason != reason ||
		!condition.LastTransitionTime.Time.Equal(since) || condition.ObservedGeneration != generation {
		t.Errorf("condition %s is %+v, want %s, %s since %v in generation %d", kind, condition, status, reason, since, generation)
	}
}

func TestForeignConditionsStay(t *testing.T) {
	task := newTask()
	task.Status.Conditions = []metav1.Condition{{Type: "Reviewed", Status: metav1.ConditionTrue, Reason: "ByAnn"}}
	settle(task, noon)
	if !meta.IsStatusConditionTrue(task.Status.Conditions, "Reviewed") {
		t.Errorf("conditions are %+v", task.Status.Conditions)
	}
}

func TestWhenATaskIsLookedAtAgain(t *testing.T) {
	finishedWith := func(ttl *int32) func(*taskv1.Task) {
		return func(task *taskv1.Task) { finish(task); task.Spec.TTLSecondsAfterFinished = ttl }
	}
	tests := map[string]struct {
		change  func(*taskv1.Task)
		after   time.Duration
		recheck time.Time
		expired bool
	}{
		"a pending Task at its deadline":       {change: func(*taskv1.Task) {}, recheck: noon.Add(time.Hour)},
		"an overdue Task never":                {change: func(*taskv1.Task) {}, after: 2 * time.Hour},
		"a finished Task never":                {change: finishedWith(nil)},
		"a finished Task at its expiry":        {change: finishedWith(ptr.To[int32](60)), after: time.Second, recheck: noon.Add(time.Minute)},
		"a finished Task just before expiry":   {change: finishedWith(ptr.To[int32](60)), after: time.Minute - 1, recheck: noon.Add(time.Minute)},
		"an expired Task is deleted":           {change: finishedWith(ptr.To[int32](60)), after: time.Minute, expired: true},
		"a Task that expires at once":          {change: finishedWith(ptr.To[int32](0)), expired: true},
		"a pending Task with a time to live":   {change: func(task *taskv1.Task) { task.Spec.TTLSecondsAfterFinished = ptr.To[int32](0) }, recheck: noon.Add(time.Hour)},
		"a Task with the longest time to live": {change: finishedWith(ptr.To[int32](1<<31 - 1)), recheck: noon.Add((1<<31 - 1) * time.Second)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			task := newTask()
			test.change(task)
			settle(task, noon)
			seen := observe(task, noon.Add(test.after))
			if !seen.recheck.Equal(test.recheck) || seen.expired != test.expired {
				t.Errorf("recheck at %v, expired %v; want %v, %v", seen.recheck, seen.expired, test.recheck, test.expired)
			}
		})
	}
}

func TestRecheckAfter(t *testing.T) {
	for name, test := range map[string]struct {
		at   time.Time
		want time.Duration
	}{
		"never":                     {},
		"soon":                      {at: noon.Add(time.Second), want: time.Second},
		"a moment ago, by rounding": {at: noon.Add(-time.Millisecond), want: recheckFloor},
		"in a century":              {at: noon.AddDate(7000, 0, 0), want: recheckLimit},
	} {
		if got := recheckAfter(test.at, noon); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
