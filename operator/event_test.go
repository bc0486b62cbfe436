package operator

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

func TestEventsCarryEverythingThatClientsPrint(t *testing.T) {
	task := newTask()
	task.ResourceVersion = "17"
	at := noon.Add(123456789 * time.Nanosecond)
	event := newEvent(task, overdue(task), "host-1", at)

	if event.Namespace != task.Namespace || event.Labels[taskv1.LabelTaskUID] != string(task.UID) {
		t.Errorf("namespace %q, labels %v", event.Namespace, event.Labels)
	}
	want := corev1.ObjectReference{
		APIVersion: "example.example.com/v1", Kind: "Task", Namespace: "default", Name: "paint", UID: "uid-1", ResourceVersion: "17",
	}
	if event.InvolvedObject != want {
		t.Errorf("involvedObject is %+v, want %+v", event.InvolvedObject, want)
	}
	if event.Type != corev1.EventTypeWarning || event.Reason != taskv1.ReasonTaskOverdue || event.Action == "" || event.Message == "" {
		t.Errorf("type %q, reason %q, action %q, message %q", event.Type, event.Reason, event.Action, event.Message)
	}
	if !event.EventTime.Time.Equal(at.Truncate(time.Microsecond)) || !event.FirstTimestamp.Time.Equal(noon) || !event.LastTimestamp.Time.Equal(noon) || event.Count != 1 {
		t.Errorf("times %v, %v, %v, count %d", event.EventTime, event.FirstTimestamp, event.LastTimestamp, event.Count)
	}
	if event.ReportingController == "" || event.ReportingInstance != "host-1" || event.Source.Component == "" || event.Source.Host != "host-1" {
		t.Errorf("reported by %q, %q, %+v", event.ReportingController, event.ReportingInstance, event.Source)
	}
}

func TestEventNamesAreValidAndTellTransitionsApart(t *testing.T) {
	task := newTask()
	task.UID = types.UID("7f3e1c9a-0b7e-4b8e-9a55-0d6f6d1f0a11")
	task.Generation = 1<<63 - 1
	task.Status.ObservedGeneration = 1<<63 - 2
	seen := map[string]bool{}
	for _, transition := range []transition{created(task), updated(task), finished(task), overdue(task), deleted(task)} {
		name := transition.eventName(task.UID)
		if errs := validation.NameIsDNSSubdomain(name, false); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		if !strings.HasPrefix(name, string(task.UID)+".") {
			t.Errorf("%s does not start with the UID", name)
		}
		if seen[name] {
			t.Errorf("%s stands for two transitions", name)
		}
		seen[name] = true
	}
}

func TestOnlyOverdueAndDeletedAreWarnings(t *testing.T) {
	task := newTask()
	for reason, test := range map[string]struct {
		transition transition
		want       string
	}{
		taskv1.ReasonTaskCreated:  {created(task), corev1.EventTypeNormal},
		taskv1.ReasonTaskUpdated:  {updated(task), corev1.EventTypeNormal},
		taskv1.ReasonTaskFinished: {finished(task), corev1.EventTypeNormal},
		taskv1.ReasonTaskOverdue:  {overdue(task), corev1.EventTypeWarning},
		taskv1.ReasonTaskDeleted:  {deleted(task), corev1.EventTypeWarning},
	} {
		if test.transition.reason != reason || test.transition.eventType() != test.want {
			t.Errorf("%s: reason %s, type %s", reason, test.transition.reason, test.transition.eventType())
		}
	}
}

func TestTruncateCutsNoCharacter(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("ä", 600), strings.Repeat("x", noteLimit), strings.Repeat("x", noteLimit) + "ä"} {
		cut := truncate(text, noteLimit)
		if len(cut) > noteLimit || !utf8.ValidString(cut) || !strings.HasPrefix(text, cut) {
			t.Errorf("%d bytes became %d", len(text), len(cut))
		}
		if len(text) <= noteLimit && cut != text || len(text) > noteLimit && len(cut) < noteLimit-utf8.UTFMax {
			t.Errorf("%d bytes became %d", len(text), len(cut))
		}
	}
}
