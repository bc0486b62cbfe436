package view

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxKeptPages bounds how many snapshots of paged lists are kept: each shares
// with the newest state all but what changed since, but a fast writer and many
// paging readers could add up. The one that would go first is dropped.
const maxKeptPages = 256

// keptPages is the snapshot that the pages of a list come from.
type keptPages struct {
	snapshot snapshot
	until    time.Time
}

// Page is the answer to a list.
type Page struct {
	Rows []*Row
	// ResourceVersion, Continue and RemainingItemCount are for the list's
	// metadata.
	ResourceVersion    string
	Continue           string
	RemainingItemCount *int64
}

// List answers a list in a namespace ("" for all). Errors are API statuses:
// 503 before Populate, 410 for a resourceVersion or token that is not held, 400
// for one that is none.
func (v *View) List(namespace string, options *metainternalversion.ListOptions) (*Page, error) {
	selected := newSelection(namespace, v.options.ClusterScoped, options)
	if options.Continue != "" {
		return v.listOn(selected, options)
	}
	state, total, err := v.stateFor(selected.namespace, options)
	if err != nil {
		return nil, err
	}
	page, more := collect(state, selected, nil, options.Limit)
	if more {
		if total < 0 {
			total = state.count(selected, nil)
		}
		v.keep(state)
		v.finish(page, selected, token{Number: state.number, Remaining: total - int64(len(page.Rows))})
	}
	return page, nil
}

// listOn answers the second and later pages.
func (v *View) listOn(selected selection, options *metainternalversion.ListOptions) (*Page, error) {
	if options.ResourceVersion != "" && options.ResourceVersion != "0" {
		return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	from, err := decodeToken(options.Continue, selected.namespace)
	if err != nil {
		return nil, err
	}
	state, err := v.stateOf(from)
	if err != nil {
		return nil, err
	}
	if from.Number == 0 && selected.everything() {
		from.Remaining = state.count(selected, from.key())
	}
	page, more := collect(state, selected, from.key(), options.Limit)
	if more {
		if from.Number == 0 { // from here on the pages are consistent again
			v.keep(state)
		}
		v.finish(page, selected, token{Number: state.number, Remaining: from.Remaining - int64(len(page.Rows))})
	}
	return page, nil
}

// collect takes up to limit selected rows after start (0: all), and tells
// whether there are more.
func collect(state snapshot, selected selection, start *Key, limit int64) (*Page, bool) {
	page := &Page{ResourceVersion: format(state.number)}
	more := false
	state.walk(selected, start, func(row *Row) bool {
		if limit > 0 && int64(len(page.Rows)) == limit {
			more = true
			return false
		}
		page.Rows = append(page.Rows, row)
		return true
	})
	return page, more
}

// finish sets the token for the page after this one. The rest is only told
// without selectors, as the API says.
func (v *View) finish(page *Page, selected selection, next token) {
	last := page.Rows[len(page.Rows)-1].key
	next.Version, next.Namespace, next.Name = tokenVersion, last.Namespace, last.Name
	if selected.everything() {
		remaining := next.Remaining
		page.RemainingItemCount = &remaining
	} else {
		next.Remaining = 0
	}
	page.Continue = next.encode()
}

// stateFor picks the snapshot that a first page is answered from, and the
// number of objects in the namespace, -1 when that is not known.
func (v *View) stateFor(namespace string, options *metainternalversion.ListOptions) (snapshot, int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	number, err := v.number(options.ResourceVersion)
	if err != nil {
		return snapshot{}, 0, err
	}
	exact := options.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		// Without a match, a limit has always meant exactly this version.
		options.ResourceVersionMatch == "" && options.Limit > 0
	if number != 0 && exact && number != v.history.newest() {
		return v.stateAt(number), -1, nil
	}
	if namespace == "" {
		return v.latest(), int64(v.tree.Len()), nil
	}
	return v.latest(), v.counts[namespace], nil
}

// number checks a resourceVersion: 0 for "" and "0". Call it with mu locked.
func (v *View) number(resourceVersion string) (uint64, error) {
	if !v.populated {
		return 0, errNotPopulated(v.options.Resource)
	}
	if resourceVersion == "" || resourceVersion == "0" {
		return 0, nil
	}
	number, err := parse(resourceVersion)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: it is not a number", resourceVersion))
	}
	if !v.history.holds(number) {
		return 0, errNotHeld(resourceVersion)
	}
	return number, nil
}

// stateAt undoes the changes after a number that is held. Call it with mu
// locked for writing.
func (v *View) stateAt(number uint64) snapshot {
	tree := v.tree.Clone()
	for i := v.history.size - 1; i >= 0; i-- {
		c := v.history.at(i)
		if c.number <= number {
			break
		}
		if c.before != nil {
			tree.ReplaceOrInsert(c.before)
		} else {
			tree.Delete(c.after)
		}
	}
	return snapshot{tree: tree, number: number}
}

// stateOf finds the snapshot that a token belongs to.
func (v *View) stateOf(from token) (snapshot, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.populated {
		return snapshot{}, errNotPopulated(v.options.Resource)
	}
	if from.Number == 0 {
		return v.latest(), nil
	}
	v.dropPages()
	if kept, found := v.pages[from.Number]; found {
		return kept.snapshot, nil
	}
	return snapshot{}, errPagesGone(token{
		Version: tokenVersion, Namespace: from.Namespace, Name: from.Name,
	}.encode())
}

// keep keeps a snapshot for the pages to come.
func (v *View) keep(state snapshot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dropPages()
	v.pages[state.number] = keptPages{snapshot: state, until: v.options.Clock.Now().Add(v.options.KeepPages)}
	if len(v.pages) <= maxKeptPages {
		return
	}
	oldest := state.number
	for number, kept := range v.pages {
		if kept.until.Before(v.pages[oldest].until) {
			oldest = number
		}
	}
	delete(v.pages, oldest)
}

// dropPages forgets the snapshots whose time is over. Call it with mu locked
// for writing.
func (v *View) dropPages() {
	now := v.options.Clock.Now()
	for number, kept := range v.pages {
		if !now.Before(kept.until) {
			delete(v.pages, number)
		}
	}
}
