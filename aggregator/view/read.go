package view

import "context"

// latest returns the newest state. Call it with mu locked for writing.
func (v *View) latest() snapshot {
	if v.current == nil {
		v.current = &snapshot{tree: v.tree.Clone(), number: v.history.newest()}
	}
	return *v.current
}

// Get returns the object with this key, and whether there is one.
func (v *View) Get(key Key) (Row, bool, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.populated {
		return Row{}, false, errNotPopulated(v.options.Resource)
	}
	row, found := v.tree.Get(&Row{key: key})
	if !found {
		return Row{}, false, nil
	}
	return *row, true, nil
}

// Wait returns once done says so of the object with this key (nil when there
// is none), and after every change until then. The error is ctx's, or 503
// while the View is not populated.
func (v *View) Wait(ctx context.Context, key Key, done func(*Row) bool) error {
	for {
		v.mu.RLock()
		populated, changed := v.populated, v.changed
		row, _ := v.tree.Get(&Row{key: key})
		v.mu.RUnlock()
		if !populated {
			return errNotPopulated(v.options.Resource)
		}
		if done(row) {
			return nil
		}
		select {
		case <-changed:
		case <-v.closed:
			return NewUnavailable(v.options.Resource, "shutting down")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Holds returns nil when this resourceVersion was handed out and is still held
// ("" and "0" are anybody's), 410 Expired when not, 400 when it is no number.
func (v *View) Holds(resourceVersion string) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	_, err := v.number(resourceVersion)
	return err
}
