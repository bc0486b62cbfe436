package details

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/taskctl-dev/taskctl/aggregator/fulltext"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// Searcher indexes the details of all Tasks. It is what a reflector of Tasks
// writes to; Tasks must not be changed after that. Make it with NewSearcher.
type Searcher struct {
	index *fulltext.Index[*taskv1.Task]

	mu      sync.Mutex
	synced  bool
	seen    uint64        // the version up to which Tasks are known
	advance chan struct{} // closed when seen grows; nil while nobody waits
}

var (
	_ cache.ReflectorStore         = (*Searcher)(nil)
	_ cache.ResourceVersionUpdater = (*Searcher)(nil)
)

// NewSearcher makes a Searcher that knows nothing yet.
func NewSearcher() *Searcher {
	return &Searcher{index: fulltext.New[*taskv1.Task]()}
}

// Synced tells whether all Tasks were listed.
func (s *Searcher) Synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// Add implements cache.ReflectorStore.
func (s *Searcher) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *Searcher) Update(object any) error {
	task, err := asTask(object)
	if err != nil {
		return err
	}
	s.index.Put(keyOf(task), task.Spec.Details, task)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *Searcher) Delete(object any) error {
	task, err := asTask(object)
	if err != nil {
		return err
	}
	s.index.Delete(keyOf(task))
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *Searcher) Replace(objects []any, resourceVersion string) error {
	kept := make(map[string]bool, len(objects))
	for _, object := range objects {
		task, err := asTask(object)
		if err != nil {
			return err
		}
		kept[keyOf(task)] = true
		s.index.Put(keyOf(task), task.Spec.Details, task)
	}
	s.index.Keep(kept)
	s.mu.Lock()
	s.synced = true
	s.mu.Unlock()
	s.UpdateResourceVersion(resourceVersion)
	return nil
}

// Resync implements cache.ReflectorStore: there is nothing to do again.
func (*Searcher) Resync() error { return nil }

// UpdateResourceVersion implements cache.ResourceVersionUpdater: it is called
// after each change, and for bookmarks too.
func (s *Searcher) UpdateResourceVersion(resourceVersion string) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return // not told; those who wait for it give up
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = max(s.seen, version)
	if s.advance != nil {
		close(s.advance)
		s.advance = nil
	}
}

// version is the version up to which Tasks are known.
func (s *Searcher) version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.FormatUint(s.seen, 10)
}

// wait returns true once Tasks are known up to a version, false when ctx ends
// first.
func (s *Searcher) wait(ctx context.Context, version uint64) bool {
	for {
		s.mu.Lock()
		if s.seen >= version {
			s.mu.Unlock()
			return true
		}
		if s.advance == nil {
			s.advance = make(chan struct{})
		}
		advance := s.advance
		s.mu.Unlock()
		select {
		case <-advance:
		case <-ctx.Done():
			return false
		}
	}
}

// keyOf orders Tasks by namespace, then name.
func keyOf(task *taskv1.Task) string { return task.Namespace + "\x00" + task.Name }

func asTask(object any) (*taskv1.Task, error) {
	task, ok := object.(*taskv1.Task)
	if !ok {
		return nil, fmt.Errorf("index details: got a %T", object)
	}
	return task, nil
}
