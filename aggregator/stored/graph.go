package stored

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

const (
	// graphDepth is how deep a graph is shown: decoders of JSON have limits.
	graphDepth = 100
	// graphNodes is how many tasks of a graph are shown.
	graphNodes = 10_000
)

// GraphREST serves the subresource graph: get.
type GraphREST struct {
	kind       Kind
	store      *genericregistry.Store
	authorizer authorizer.Authorizer
}

var (
	_ rest.Storage = (*GraphREST)(nil)
	_ rest.Getter  = (*GraphREST)(nil)
)

// New implements rest.Storage.
func (r *GraphREST) New() runtime.Object { return &searchv1.TaskGraph{} }

// Destroy implements rest.Storage. The store is destroyed by the resource.
func (r *GraphREST) Destroy() {}

// Get implements rest.Getter. All tasks of the graph are read at once, so that
// it is the one of one moment, and who reads it must be allowed to list them.
func (r *GraphREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if err := r.mayList(ctx, name); err != nil {
		return nil, err
	}
	list, err := r.store.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("read a list of %s: %w", r.kind.Resource, err)
	}
	tree := tree{specs: map[string]*searchv1.StoredTaskSpec{}, above: map[string]bool{}, shown: map[string]bool{}}
	graph := &searchv1.TaskGraph{}
	err = meta.EachListItem(list, func(object runtime.Object) error {
		objectMeta, spec, _, ok := parts(object)
		if !ok {
			return fmt.Errorf("draw a graph: got a %T", object)
		}
		tree.specs[objectMeta.Name] = spec
		if objectMeta.Name == name {
			graph.Name, graph.Namespace, graph.UID = objectMeta.Name, objectMeta.Namespace, objectMeta.UID
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if graph.Name == "" {
		return nil, apierrors.NewNotFound(searchv1.Resource(r.kind.Resource), name)
	}
	graph.ResourceVersion = listMeta.GetResourceVersion()
	graph.Root = tree.draw(name, 1)
	graph.Truncated = tree.truncated
	return graph, nil
}

func (r *GraphREST) mayList(ctx context.Context, name string) error {
	user, found := genericapirequest.UserFrom(ctx)
	if !found {
		return apierrors.NewInternalError(errors.New("a request without a user reached a graph"))
	}
	decision, reason, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: "list", Namespace: genericapirequest.NamespaceValue(ctx),
		APIGroup: searchv1.GroupName, APIVersion: searchv1.GroupVersion().Version, Resource: r.kind.Resource, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("ask whether the request is allowed: %w", err))
	}
	return apierrors.NewForbidden(searchv1.Resource(r.kind.Resource+"/graph"), name,
		fmt.Errorf("a graph shows other tasks too, and user %q cannot list %s here: %s", user.GetName(), r.kind.Resource, reason))
}

// tree draws what a task depends on.
type tree struct {
	specs     map[string]*searchv1.StoredTaskSpec
	above     map[string]bool // on the way from the root
	shown     map[string]bool // with all that they depend on
	nodes     int
	truncated bool
}

func (t *tree) draw(name string, depth int) searchv1.TaskGraphNode {
	t.nodes++
	node := searchv1.TaskGraphNode{Name: name}
	spec, exists := t.specs[name]
	if !exists {
		node.Missing = true
		return node
	}
	node.TaskState = spec.TaskState
	switch {
	case len(spec.DependsOn) == 0:
		return node
	case t.above[name]:
		node.Cyclic = true
		return node
	case t.shown[name]:
		node.Repeated = true
		return node
	case depth == graphDepth:
		t.truncated = true
		return node
	}
	t.above[name], t.shown[name] = true, true
	for _, dependency := range spec.DependsOn {
		if t.nodes == graphNodes {
			t.truncated = true
			break
		}
		node.DependsOn = append(node.DependsOn, t.draw(dependency, depth+1))
	}
	delete(t.above, name)
	return node
}
