package combinedtask

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// source is an API server: the model that the join is compared with.
type source struct {
	random  *rand.Rand
	version int
	uids    int
	tasks   map[string]*taskv1.Task
	events  map[string]*corev1.Event
}

// joined computes what the join should show, the slow way.
func (s *source) joined(limit int) []string {
	var lines []string
	for _, task := range s.tasks {
		var about []*corev1.Event
		for _, event := range s.events {
			if event.Namespace == task.Namespace && event.Labels[taskv1.LabelTaskUID] == string(task.UID) {
				about = append(about, event)
			}
		}
		slices.SortFunc(about, func(a, b *corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
		combined := &searchv1.CombinedTask{}
		combined.ObjectMeta = task.ObjectMeta
		combined.Status.TaskResourceVersion = task.ResourceVersion
		combined.Status.EventsCount = int32(len(about))
		for _, event := range about[max(0, len(about)-limit):] {
			combined.Status.Events = append(combined.Status.Events, *event)
		}
		combined.Status.EventsTruncated = len(about) > limit
		lines = append(lines, describe(combined))
	}
	slices.Sort(lines)
	return lines
}

// change changes one thing and tells the join, unless it is disconnected.
func (s *source) change(f fixture, connected bool) {
	s.version++
	name := fmt.Sprintf("t%d", s.random.IntN(8))
	existing := s.tasks[name]
	switch s.random.IntN(6) {
	case 0, 1: // a Task is created or changed
		if existing == nil {
			s.uids++
			existing = task("a", name, fmt.Sprint("u", s.uids), s.version)
		}
		changed := existing.DeepCopy()
		changed.ResourceVersion = fmt.Sprint(s.version)
		s.tasks[name] = changed
		if connected {
			must(f.t, f.tasks.Update(changed.DeepCopy()))
		}
	case 2: // a Task is deleted
		if existing == nil {
			return
		}
		delete(s.tasks, name)
		if connected {
			must(f.t, f.tasks.Delete(existing.DeepCopy()))
		}
	case 3, 4: // an Event about a Task that exists, existed or never will
		uid := fmt.Sprint("u", s.uids-s.random.IntN(10)+1)
		event := taskEvent("a", fmt.Sprint("e", s.version), uid, s.version)
		s.events[event.Name] = event
		if connected {
			must(f.t, f.events.Add(event.DeepCopy()))
		}
	case 5: // the oldest Event expires
		oldest := s.oldest()
		if oldest == nil {
			return
		}
		delete(s.events, oldest.Name)
		if connected {
			must(f.t, f.events.Delete(oldest.DeepCopy()))
		}
	}
}

func (s *source) oldest() *corev1.Event {
	var oldest *corev1.Event
	for _, event := range s.events {
		if oldest == nil || event.LastTimestamp.Before(&oldest.LastTimestamp) {
			oldest = event
		}
	}
	return oldest
}

// relist tells the join everything, as after a lost connection.
func (s *source) relist(f fixture) {
	var tasks, events []any
	for _, task := range s.tasks {
		tasks = append(tasks, task.DeepCopy())
	}
	for _, event := range s.events {
		events = append(events, event.DeepCopy())
	}
	must(f.t, f.tasks.Replace(tasks, ""))
	must(f.t, f.events.Replace(events, ""))
}

// mirror is a client that knows only what a watch tells it.
type mirror map[string]string

func (m mirror) apply(t *testing.T, event watch.Event) {
	t.Helper()
	combined := event.Object.(*searchv1.CombinedTask)
	known, exists := m[combined.Name]
	switch event.Type {
	case watch.Added:
		if exists {
			t.Fatalf("%s is added over %s", describe(combined), known)
		}
	case watch.Modified, watch.Deleted:
		if !exists || !strings.Contains(known, fmt.Sprintf("(%s)", combined.UID)) {
			t.Fatalf("%s %s, and known is %q", event.Type, describe(combined), known)
		}
	}
	if event.Type == watch.Deleted {
		delete(m, combined.Name)
	} else {
		if exists && known == describe(combined) {
			t.Fatalf("nothing changed by %s", known)
		}
		m[combined.Name] = describe(combined)
	}
}

func (m mirror) lines() []string {
	var lines []string
	for _, line := range m {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func TestTheJoinIsWhatIsComputedTheSlowWay(t *testing.T) {
	const limit, steps = 4, 1500
	for seed := range uint64(4) {
		f := synced(t, limit)
		s := &source{random: rand.New(rand.NewPCG(seed, seed)), tasks: map[string]*taskv1.Task{}, events: map[string]*corev1.Event{}}
		w := f.watchFromNow()
		client := mirror{}
		connected := true
		for step := range steps {
			s.change(f, connected)
			if step%200 == 150 {
				connected = false
			}
			if step%200 == 180 {
				s.relist(f)
				connected = true
			}
			if !connected {
				continue
			}
			want := s.joined(limit)
			got := f.state()
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: got\n\t%s\nwant\n\t%s", seed, step, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
			client.catchUp(f, w)
			if got := client.lines(); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: a watch knows\n\t%s\nwant\n\t%s", seed, step, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
		}
	}
}

// catchUp applies events until the watch is at the version of a list.
func (m mirror) catchUp(f fixture, w watch.Interface) {
	f.t.Helper()
	must(f.t, f.tasks.Add(task("zz", "marker", "marker", 1)))
	must(f.t, f.tasks.Delete(task("zz", "marker", "marker", 2)))
	for {
		select {
		case event := <-w.ResultChan():
			if event.Object.(metav1.Object).GetName() != "marker" {
				m.apply(f.t.(*testing.T), event)
			} else if event.Type == watch.Deleted {
				return
			}
		case <-time.After(patience):
			f.t.Fatalf("the watch does not catch up within %s", patience)
		}
	}
}
