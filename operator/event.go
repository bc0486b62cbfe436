package operator

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

const (
	// reportingController names this controller in Events.
	reportingController = "example.example.com/task-controller"
	// component is the same in the older field that kubectl prints.
	component = "taskctl-operator"

	// noteLimit and instanceLimit are the API server's limits, in bytes, on an
	// Event's message and reportingInstance.
	noteLimit     = 1024
	instanceLimit = 128
)

// newEvent is the Event that announces a transition. client-go's recorder is no
// help: it sets no labels and makes up a name of its own. Every field that says
// when is set, because clients differ in which of them they sort and print by.
func newEvent(task *taskv1.Task, t transition, instance string, at time.Time) *corev1.Event {
	seconds := metav1.Time{Time: at.Truncate(time.Second)}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: task.Namespace,
			Name:      t.eventName(task.UID),
			Labels:    map[string]string{taskv1.LabelTaskUID: string(task.UID)},
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion:      taskv1.GroupVersion().String(),
			Kind:            "Task",
			Namespace:       task.Namespace,
			Name:            task.Name,
			UID:             task.UID,
			ResourceVersion: task.ResourceVersion,
		},
		Type:                t.eventType(),
		Reason:              t.reason,
		Action:              t.action,
		Message:             truncate(t.message, noteLimit),
		EventTime:           metav1.MicroTime{Time: at.Truncate(time.Microsecond)},
		FirstTimestamp:      seconds,
		LastTimestamp:       seconds,
		Count:               1,
		Source:              corev1.EventSource{Component: component, Host: instance},
		ReportingController: reportingController,
		ReportingInstance:   instance,
	}
}

// truncate shortens s to at most limit bytes without cutting a character.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := 0
	for i := range s {
		if i > limit {
			break
		}
		cut = i
	}
	return s[:cut]
}
