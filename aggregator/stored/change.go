package stored

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/relations"
	"github.com/taskctl-dev/taskctl/aggregator/view"
)

// readBackLimit bounds finding out what became of a write that failed.
const readBackLimit = 2 * time.Second

// change is one create, update or patch. Kubernetes' registry calls the
// validation right before the write, with what is to be written; what adds to a
// dependsOn is checked there, and from there until the write is done no other
// such write of the kind goes on. Of two writes that would close a cycle
// together the second one sees the first.
type change struct {
	relations *Relations
	held      bool // the lock
	key       relations.Key
}

// Create implements rest.Creater.
func (r *REST) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	c := &change{relations: r.relations}
	defer c.release()
	created, err := r.Store.Create(ctx, object, c.creating(validate), options)
	c.note(ctx, created, err, options.DryRun)
	return created, err
}

// Update implements rest.Updater. Patches come here too.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	c := &change{relations: r.relations}
	defer c.release()
	updated, created, err := r.Store.Update(ctx, name, info, c.creating(create), c.updating(update), forceAllowCreate, options)
	c.note(ctx, updated, err, options.DryRun)
	return updated, created, err
}

func (c *change) creating(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, object runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, object); err != nil {
				return err
			}
		}
		return c.check(ctx, object, nil)
	}
}

func (c *change) updating(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, object, old runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, object, old); err != nil {
				return err
			}
		}
		_, spec, _, ok := parts(old)
		if !ok {
			return fmt.Errorf("relate tasks: got a %T", old)
		}
		return c.check(ctx, object, spec.DependsOn)
	}
}

// check refuses what closes a cycle. It may be called several times, when the
// registry tries again.
func (c *change) check(ctx context.Context, object runtime.Object, before []string) error {
	objectMeta, spec, _, ok := parts(object)
	if !ok {
		return fmt.Errorf("relate tasks: got a %T", object)
	}
	if !slices.ContainsFunc(spec.DependsOn, func(name string) bool { return !slices.Contains(before, name) }) {
		return nil
	}
	if !c.relations.Synced() {
		return view.NewUnavailable(searchv1.Resource(c.relations.kind.Resource), "not all dependencies are known yet, try again")
	}
	c.key = keyOf(objectMeta)
	if !c.held {
		select {
		case c.relations.writing <- struct{}{}:
			c.held = true
		case <-ctx.Done():
			return apierrors.NewTimeoutError("waiting for another change of dependsOn", 1)
		}
	}
	return c.relations.refuseCycle(ctx, c.key, spec.DependsOn)
}

// note tells the graph what was written, before the lock is given back: the
// watch will tell it a little later.
func (c *change) note(ctx context.Context, written runtime.Object, err error, dryRun []string) {
	if !c.held || len(dryRun) > 0 {
		return
	}
	if err != nil {
		if !unknownOutcome(err) {
			return
		}
		// What can't be read back either may be missing in later checks, until
		// the watch tells of it: then there is the condition Cyclic.
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), readBackLimit)
		defer cancel()
		if written, err = c.relations.store.Get(in(reading, c.key.Namespace), c.key.Name, &metav1.GetOptions{}); err != nil {
			return
		}
	}
	if key, task, version, err := read(written); err == nil {
		c.relations.graph.Wrote(key, task.DependsOn, version)
	}
}

// unknownOutcome tells whether a write that failed may have been stored.
func unknownOutcome(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

func (c *change) release() {
	if c.held {
		<-c.relations.writing
	}
}

func cycleError(kind Kind, key relations.Key, cycle []relations.Key) error {
	names := make([]string, 0, len(cycle))
	for _, at := range cycle {
		names = append(names, at.Name)
	}
	path := strings.Join(names, " → ")
	if len(names) > shownCycle {
		path = strings.Join(names[:shownCycle], " → ") + fmt.Sprintf(" → … (%d tasks)", len(names)-1)
	}
	return apierrors.NewInvalid(searchv1.GroupVersion().WithKind(kind.Name).GroupKind(), key.Name, field.ErrorList{
		field.Invalid(field.NewPath("spec", "dependsOn"), names[1], "it would depend on itself: "+path),
	})
}

// shownCycle is how many tasks of a cycle an error names.
const shownCycle = 20
