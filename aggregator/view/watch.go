package view

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch starts a watch in a namespace ("" for all); it ends with ctx, with
// Stop, with Close, or when it fell behind the history. An unknown
// resourceVersion is answered as Kubernetes does: by a watch whose only event
// is an ERROR with status 410. The errors are 503 before Populate, and 400.
func (v *View) Watch(ctx context.Context, namespace string, options *metainternalversion.ListOptions) (watch.Interface, error) {
	w := &watcher{
		view:     v,
		selected: newSelection(namespace, v.options.ClusterScoped, options),
		results:  make(chan watch.Event, watchBuffer),
		stopped:  make(chan struct{}),
	}
	start, err := v.startOf(options)
	if err != nil {
		if expired := asExpired(err); expired != nil {
			return failedWatch(expired), nil
		}
		return nil, err
	}
	w.bookmarks = options.AllowWatchBookmarks
	// Without the client's asking, the initial objects are the old way of
	// starting a watch, which has no mark at their end.
	w.markInitial = start.initial && w.bookmarks && options.SendInitialEvents != nil
	w.deadline, w.hasDeadline = ctx.Deadline()

	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.closed:
		return nil, NewUnavailable(v.options.Resource, "shutting down")
	default:
	}
	v.watches.Add(1)
	go func() {
		defer v.watches.Done()
		defer close(w.results)
		// A panic ends this watch, not the process.
		defer func() {
			if reason := recover(); reason != nil {
				utilruntime.HandleErrorWithContext(ctx, fmt.Errorf("panic: %v", reason), "A watch ended", "resource", v.options.Resource)
			}
		}()
		w.run(ctx, start)
	}()
	return w, nil
}

// watchStart is where a watch begins: the state that its client knows, or is
// sent first.
type watchStart struct {
	state   snapshot // its tree is only set with initial
	initial bool
}

func (v *View) startOf(options *metainternalversion.ListOptions) (watchStart, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	number, err := v.number(options.ResourceVersion)
	if err != nil {
		return watchStart{}, err
	}
	initial := number == 0
	if options.SendInitialEvents != nil {
		initial = *options.SendInitialEvents
	}
	if initial {
		return watchStart{state: v.latest(), initial: true}, nil
	}
	if number == 0 {
		number = v.history.newest()
	}
	return watchStart{state: snapshot{number: number}}, nil
}

// after returns the next changes after a number, or a channel that is closed
// when there are some. It reports false when the history no longer reaches
// back that far.
func (v *View) after(number uint64) (changes []change, changed <-chan struct{}, held bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	changes, held = v.history.after(number, readAtOnce)
	return changes, v.changed, held
}

// asExpired returns the status of a 410, nil for other errors.
func asExpired(err error) *metav1.Status {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return nil
	}
	expired := status.Status()
	return &expired
}

// failedWatch is a watch that says why it failed and ends.
func failedWatch(status *metav1.Status) watch.Interface {
	results := make(chan watch.Event, 1)
	results <- watch.Event{Type: watch.Error, Object: status}
	close(results)
	return watch.NewProxyWatcher(results)
}
