package operator

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// catchUpLimit bounds how long a Task that the cache shows too old is left
// alone. The watch event that brings the newer one comes within milliseconds;
// the limit is for a cluster whose store was set back to a backup.
const catchUpLimit = 5 * time.Second

// writes remembers the newest version of each Task that this controller wrote
// until the cache shows it. Reconciling the older one would be harmless, since
// every write is conditional, but would cost two refused requests for each
// Task that is created.
type writes struct {
	mu    sync.Mutex
	newer map[types.NamespacedName]write
}

type write struct {
	uid     types.UID
	version string
	at      time.Time
}

func newWrites() *writes {
	return &writes{newer: map[types.NamespacedName]write{}}
}

// record notes the version that a write of task returned.
func (w *writes) record(task *taskv1.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.newer[client.ObjectKeyFromObject(task)] = write{uid: task.UID, version: task.ResourceVersion, at: time.Now()}
}

// forget drops what is known of a Task that is gone.
func (w *writes) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.newer, key)
}

// pending says how much longer a cached Task that is older than what was
// written is left alone; zero means that it may be reconciled.
func (w *writes) pending(cached *taskv1.Task) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(cached)
	last, ok := w.newer[key]
	if !ok {
		return 0
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, last.version)
	left := catchUpLimit - time.Since(last.at)
	if err != nil || order >= 0 || last.uid != cached.UID || left <= 0 {
		delete(w.newer, key)
		return 0
	}
	return left
}
