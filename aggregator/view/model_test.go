package view

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// model records what every version of the state is.
type model struct {
	mu     sync.Mutex
	states map[string]map[string]string // version → object → value
}

func (m *model) record(version string, state map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states[version] = maps.Clone(state)
}

// at returns the selected objects of a version, as one text. A version is
// recorded right after it becomes visible, so a reader may have to wait.
func (m *model) at(ctx context.Context, version, namespace string) (string, error) {
	for ctx.Err() == nil {
		m.mu.Lock()
		state, found := m.states[version]
		m.mu.Unlock()
		if found {
			return text(state, namespace), nil
		}
	}
	return "", fmt.Errorf("version %s was never written: %w", version, ctx.Err())
}

func text(state map[string]string, namespace string) string {
	var words []string
	for name, value := range state {
		if namespace == "" || strings.HasPrefix(name, namespace+"/") {
			words = append(words, name+"="+value)
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestReadersAgreeWithTheModel lets one writer change objects at random while
// readers list, page and watch, and checks every version that they see.
func TestReadersAgreeWithTheModel(t *testing.T) {
	const rounds = 2000
	f := newView(t, Options{History: 50}, []Change{}...)
	recorded := &model{states: map[string]map[string]string{}}
	recorded.record(f.newest(), nil)

	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	written := make(chan struct{})
	var group sync.WaitGroup
	failures := make(chan error, 100)
	reader := func(name string, read func() error) {
		group.Go(func() {
			for {
				if err := read(); err != nil {
					failures <- fmt.Errorf("%s: %w", name, err)
					return
				}
				select {
				case <-written:
					return
				default:
				}
			}
		})
	}
	for _, namespace := range []string{"", "a"} {
		reader("list", func() error { return f.compareList(ctx, recorded, namespace) })
		reader("pages", func() error { return f.comparePages(ctx, recorded, namespace) })
		for range 3 {
			reader("watch", func() error { return f.compareWatch(ctx, recorded, namespace, written) })
		}
	}

	random := rand.New(rand.NewPCG(1, 2))
	state := map[string]string{}
	for round := range rounds {
		name := fmt.Sprintf("%c/%d", 'a'+random.IntN(3), random.IntN(10))
		if _, exists := state[name]; exists && random.IntN(3) == 0 {
			delete(state, name)
			f.commit(gone(name))
		} else {
			state[name] = fmt.Sprint(round)
			f.commit(set(name, state[name]))
		}
		recorded.record(format(f.numberNow()), state)
	}
	close(written)
	group.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}

func (f fixture) numberNow() uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.history.newest()
}

func (f fixture) compareList(ctx context.Context, recorded *model, namespace string) error {
	page, err := f.List(namespace, &listOptions{})
	if err != nil {
		return err
	}
	return compare(ctx, recorded, page.ResourceVersion, namespace, names(page))
}

func (f fixture) comparePages(ctx context.Context, recorded *model, namespace string) error {
	page, err := f.List(namespace, &listOptions{Limit: 3})
	var all []string
	for err == nil {
		all = append(all, strings.Fields(names(page))...)
		if left := page.RemainingItemCount; page.Continue != "" && *left <= 0 {
			return fmt.Errorf("there is a page after this one, and the rest is %d", *left)
		}
		if page.Continue == "" {
			return compare(ctx, recorded, page.ResourceVersion, namespace, strings.Join(all, " "))
		}
		page, err = f.List(namespace, &listOptions{Limit: 3, Continue: page.Continue})
	}
	if apierrors.IsResourceExpired(err) {
		return nil // the writer is faster than the snapshots that are kept
	}
	return err
}

func compare(ctx context.Context, recorded *model, version, namespace, got string) error {
	want, err := recorded.at(ctx, version, namespace)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("version %s of %q is %q, want %q", version, namespace, got, want)
	}
	return nil
}

// compareWatch follows a watch until everything is written and compares the
// state after each event. Falling behind is allowed, being wrong is not.
func (f fixture) compareWatch(ctx context.Context, recorded *model, namespace string, written <-chan struct{}) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := f.Watch(watching, namespace, &listOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	start, err := f.List(namespace, &listOptions{})
	if err != nil {
		return err
	}
	state := map[string]string{}
	last := ""
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			kind, version := eventText(event)
			if kind == "ERROR 410" {
				return nil
			}
			object := event.Object.(*metav1.PartialObjectMetadata)
			name := object.Namespace + "/" + object.Name
			if event.Type == watch.Deleted {
				delete(state, name)
			} else {
				state[name] = object.Annotations["value"]
			}
			if event.Type == watch.Added && !newer(version, start.ResourceVersion) {
				continue // the initial objects come one by one
			}
			if last != "" && !newer(version, last) {
				return fmt.Errorf("version %s comes after %s", version, last)
			}
			last = version
			if err := compare(ctx, recorded, version, namespace, text(state, namespace)); err != nil {
				return fmt.Errorf("after %s: %w", kind, err)
			}
		case <-written:
			return nil
		}
	}
}

func newer(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }
