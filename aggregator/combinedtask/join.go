package combinedtask

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/taskctl-dev/taskctl/aggregator/view"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// DefaultEventsPerTask is how many Events of a Task are shown.
const DefaultEventsPerTask = 100

// Join computes the CombinedTasks from Tasks and Events. Its two halves, which
// [Join.Tasks] and [Join.Events] return, are filled by reflectors.
//
// It owns what it is given: objects are trimmed in place and shared from then
// on.
type Join struct {
	view  *view.View
	limit int

	// mu serialises the two halves. It is held while the view waits for
	// numbers, so no change overtakes another one.
	mu     sync.Mutex
	tasks  map[view.Key]*taskv1.Task
	byUID  map[taskRef]*taskv1.Task
	items  map[taskRef]*item // what the view was last told
	times  map[taskRef]timeline
	events map[eventKey]*event
	synced struct{ tasks, events bool }
}

// NewJoin makes an empty join that commits to this view. eventsPerTask is how
// many Events of a Task are shown, [DefaultEventsPerTask] if 0.
func NewJoin(v *view.View, eventsPerTask int) *Join {
	if eventsPerTask == 0 {
		eventsPerTask = DefaultEventsPerTask
	}
	return &Join{
		view:   v,
		limit:  eventsPerTask,
		tasks:  map[view.Key]*taskv1.Task{},
		byUID:  map[taskRef]*taskv1.Task{},
		items:  map[taskRef]*item{},
		times:  map[taskRef]timeline{},
		events: map[eventKey]*event{},
	}
}

// Synced tells whether both halves are known, so that the view is populated.
func (j *Join) Synced() bool { return j.view.Populated() }

func refOf(task *taskv1.Task) taskRef {
	return taskRef{namespace: task.Namespace, uid: task.UID}
}

func keyOf(task *taskv1.Task) view.Key {
	return view.Key{Namespace: task.Namespace, Name: task.Name}
}

// touched collects the Tasks whose combined objects may have changed, in the
// order in which that happened.
type touched struct {
	refs []taskRef
	seen map[taskRef]struct{}
}

func (t *touched) add(ref taskRef) {
	if _, found := t.seen[ref]; found {
		return
	}
	if t.seen == nil {
		t.seen = map[taskRef]struct{}{}
	}
	t.seen[ref] = struct{}{}
	t.refs = append(t.refs, ref)
}

// commit tells the view what became of the Tasks that were touched. Until both
// halves are known it waits; then everything is told at once.
func (j *Join) commit(ctx context.Context, t *touched) error {
	if !j.view.Populated() {
		if !j.synced.tasks || !j.synced.events {
			return nil
		}
		return j.populate(ctx)
	}
	changes := make([]view.Change, 0, len(t.refs))
	next := make(map[taskRef]*item, len(t.refs))
	// Deletions come first: a Task that was deleted and created again under
	// the same name is two Tasks.
	for _, ref := range t.refs {
		if last, told := j.items[ref]; told && j.byUID[ref] == nil {
			changes = append(changes, view.Change{Key: last.Key()})
			next[ref] = nil
		}
	}
	for _, ref := range t.refs {
		task := j.byUID[ref]
		if task == nil {
			continue
		}
		combined := j.combine(ref, task)
		if last, told := j.items[ref]; told && last.equal(combined) {
			continue
		}
		changes = append(changes, view.Change{Key: combined.Key(), Item: combined})
		next[ref] = combined
	}
	if len(changes) == 0 {
		return nil
	}
	if err := j.view.Commit(ctx, changes...); err != nil {
		return err
	}
	for ref, combined := range next {
		if combined == nil {
			delete(j.items, ref)
		} else {
			j.items[ref] = combined
		}
	}
	return nil
}

func (j *Join) populate(ctx context.Context) error {
	items := make([]view.Item, 0, len(j.byUID))
	for ref, task := range j.byUID {
		combined := j.combine(ref, task)
		j.items[ref] = combined
		items = append(items, combined)
	}
	return j.view.Populate(ctx, items)
}

func (j *Join) combine(ref taskRef, task *taskv1.Task) *item {
	events := j.times[ref]
	return &item{task: task, events: events.shown(j.limit), count: len(events)}
}

// setTask stores a Task. One with another UID under the same name replaces the
// former one, whose end nobody told us of.
func (j *Join) setTask(task *taskv1.Task, t *touched) {
	key, ref := keyOf(task), refOf(task)
	if former, found := j.tasks[key]; found {
		if former.UID == task.UID && former.ResourceVersion == task.ResourceVersion {
			return
		}
		if former.UID != task.UID {
			j.dropTask(key, t)
		}
	}
	j.tasks[key] = task
	j.byUID[ref] = task
	t.add(ref)
}

func (j *Join) dropTask(key view.Key, t *touched) {
	task, found := j.tasks[key]
	if !found {
		return
	}
	delete(j.tasks, key)
	delete(j.byUID, refOf(task))
	t.add(refOf(task))
}

// setEvent stores an Event, in the place of the one of that name if there is
// one. Tasks need not be known yet: the two halves arrive in any order.
func (j *Join) setEvent(e *event, t *touched) {
	if former, found := j.events[e.key]; found {
		if former.uid == e.uid && former.version == e.version {
			return
		}
		j.dropEvent(e.key, t)
	}
	j.events[e.key] = e
	j.times[e.ref] = j.times[e.ref].add(e, j.limit)
	t.add(e.ref)
}

func (j *Join) dropEvent(key eventKey, t *touched) {
	e, found := j.events[key]
	if !found {
		return
	}
	delete(j.events, key)
	if rest := j.times[e.ref].remove(e); len(rest) > 0 {
		j.times[e.ref] = rest
	} else {
		delete(j.times, e.ref)
	}
	t.add(e.ref)
}

// eventRef reads the label that says which Task an Event is about.
func eventRef(namespace string, labels map[string]string) taskRef {
	return taskRef{namespace: namespace, uid: types.UID(labels[taskv1.LabelTaskUID])}
}
