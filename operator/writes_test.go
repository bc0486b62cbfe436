package operator

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

func TestWritesHoldBackOlderVersions(t *testing.T) {
	version := func(uid, version string) *taskv1.Task {
		task := newTask()
		task.UID, task.ResourceVersion = types.UID("uid-"+uid), version
		return task
	}
	tests := map[string]struct {
		written, cached *taskv1.Task
		waits           bool
	}{
		"nothing was written":              {cached: version("1", "5")},
		"the cache is behind":              {written: version("1", "10"), cached: version("1", "9"), waits: true},
		"the cache has what was written":   {written: version("1", "10"), cached: version("1", "10")},
		"the cache has something newer":    {written: version("1", "10"), cached: version("1", "11")},
		"the Task was made anew":           {written: version("1", "10"), cached: version("2", "9")},
		"the version can't be compared":    {written: version("1", "10"), cached: version("1", "soon")},
		"what was written can't be either": {written: version("1", "soon"), cached: version("1", "9")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWrites()
			if test.written != nil {
				w.record(test.written)
			}
			if wait := w.pending(test.cached); wait > 0 != test.waits || wait > catchUpLimit {
				t.Errorf("waits for %v", wait)
			}
			if left := len(w.newer); left > 0 != test.waits {
				t.Errorf("%d entries are left", left)
			}
		})
	}
}

func TestWritesHoldBackNotForEver(t *testing.T) {
	w := newWrites()
	task := newTask()
	task.ResourceVersion = "10"
	w.record(task)
	entry := w.newer[client.ObjectKeyFromObject(task)]
	entry.at = time.Now().Add(-catchUpLimit)
	w.newer[client.ObjectKeyFromObject(task)] = entry
	task.ResourceVersion = "9"
	if wait := w.pending(task); wait != 0 {
		t.Errorf("still waits for %v", wait)
	}
}

func TestWritesForgetTasksThatAreGone(t *testing.T) {
	w := newWrites()
	task := newTask()
	w.record(task)
	w.forget(client.ObjectKeyFromObject(task))
	if len(w.newer) > 0 {
		t.Error("it is still remembered")
	}
}
