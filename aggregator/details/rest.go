package details

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/fulltext"
	"github.com/taskctl-dev/taskctl/aggregator/view"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

const (
	resourceName = "details"
	singularName = "taskmatch"

	// catchUp is how long a search waits until the index has what the API server
	// had when the search began. The API server tells versions of all resources,
	// and a watch of Tasks only those of Tasks: what it was told by then has
	// usually arrived long before.
	catchUp = 100 * time.Millisecond
	// versionLimit is how long a search waits for a version that the client
	// names.
	versionLimit = 3 * time.Second
)

// VersionReader tells the newest resourceVersion of Tasks.
type VersionReader interface {
	TaskVersion(ctx context.Context) (uint64, error)
}

// REST serves details: list.
type REST struct {
	searcher   *Searcher
	reader     VersionReader
	authorizer authorizer.Authorizer
	results    *results
	run        int64
	table      table
}

var (
	_ rest.Storage              = (*REST)(nil)
	_ rest.Scoper               = (*REST)(nil)
	_ rest.Lister               = (*REST)(nil)
	_ rest.SingularNameProvider = (*REST)(nil)
)

// NewREST serves searches. The authorizer is asked about the user's rights on
// Tasks and should cache its answers.
func NewREST(s *Searcher, reader VersionReader, a authorizer.Authorizer, c clock.PassiveClock) *REST {
	return &REST{
		searcher: s, reader: reader, authorizer: a, run: c.Now().UnixNano(),
		results: &results{clock: c, kept: map[uint64]*result{}},
	}
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &searchv1.TaskMatch{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {}

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object { return &searchv1.TaskMatchList{} }

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return singularName }

// ConvertToTable implements rest.TableConvertor.
func (r *REST) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.table.convert(object, options)
}

// List implements rest.Lister: one page of a search.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	namespace := genericapirequest.NamespaceValue(ctx)
	if err := r.mayList(ctx, namespace); err != nil {
		return nil, err
	}
	if !r.searcher.Synced() {
		return nil, view.NewUnavailable(searchv1.Resource(resourceName), "not all Tasks are indexed yet, try again")
	}
	wanted := newSearch(namespace, queryOf(ctx), options)
	if options.Continue != "" {
		found, at, err := r.results.find(options.Continue, r.run, wanted)
		if err != nil {
			return nil, err
		}
		return r.page(found, at, options.Limit), nil
	}
	if err := r.awaitVersion(ctx, options); err != nil {
		return nil, err
	}
	found := &result{search: wanted, version: r.searcher.version()}
	if wanted.query != "" {
		query, err := parse(wanted.query)
		if err != nil {
			return nil, err
		}
		found.query = query
		found.matches = r.searcher.index.Search(query, keep(namespace, options))
	}
	return r.page(found, token{Version: tokenVersion, Run: r.run}, options.Limit), nil
}

// page takes a page out of a result, and keeps the result if there is more.
func (r *REST) page(found *result, at token, limit int64) *searchv1.TaskMatchList {
	rest := found.matches[at.Offset:]
	list := &searchv1.TaskMatchList{Items: []searchv1.TaskMatch{}}
	list.ResourceVersion = found.version
	if limit > 0 && int64(len(rest)) > limit {
		remaining := int64(len(rest)) - limit
		list.RemainingItemCount = &remaining
		if at.Result == 0 {
			at.Result = r.results.keep(found)
		}
		at.Offset += int(limit)
		list.Continue = at.encode()
		rest = rest[:limit]
	}
	for _, match := range rest {
		list.Items = append(list.Items, newMatch(found.query, match))
	}
	return list
}

func newMatch(query *fulltext.Query, match fulltext.Match[*taskv1.Task]) searchv1.TaskMatch {
	task := match.Value.DeepCopy()
	return searchv1.TaskMatch{
		ObjectMeta: task.ObjectMeta,
		Score:      int64(math.Round(match.Score * 1000)),
		Snippet:    query.Snippet(task.Spec.Details),
		Spec:       task.Spec,
		Status:     task.Status,
	}
}

// awaitVersion waits until the index has what the client expects: what there is
// by now, or the version that it names.
func (r *REST) awaitVersion(ctx context.Context, options *metainternalversion.ListOptions) error {
	switch options.ResourceVersion {
	case "0":
		return nil
	case "":
		version, err := r.reader.TaskVersion(ctx)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("read the newest version of Tasks: %w", err))
		}
		waiting, cancel := context.WithTimeout(ctx, catchUp)
		defer cancel()
		r.searcher.wait(waiting, version)
		return ctx.Err()
	}
	version, err := strconv.ParseUint(options.ResourceVersion, 10, 64)
	if err != nil || options.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return apierrors.NewBadRequest("details can only be searched as they are: leave resourceVersion out, or name the version of a Task, with resourceVersionMatch=NotOlderThan")
	}
	waiting, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	if !r.searcher.wait(waiting, version) {
		return apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %s", version, r.searcher.version()), 1)
	}
	return nil
}

// mayList checks that the search gives nobody more than they have: who searches
// must be allowed to list the Tasks, in the same namespace or everywhere. The
// right on details itself was checked before.
func (r *REST) mayList(ctx context.Context, namespace string) error {
	user, found := genericapirequest.UserFrom(ctx)
	if !found {
		return apierrors.NewInternalError(errors.New("a request without a user reached the search"))
	}
	decision, reason, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: "list", Namespace: namespace,
		APIGroup: taskv1.GroupName, APIVersion: taskv1.GroupVersion().Version, Resource: "tasks", ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("ask whether the request is allowed: %w", err))
	}
	scope := "in all namespaces"
	if namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", namespace)
	}
	return apierrors.NewForbidden(searchv1.Resource(resourceName), "",
		fmt.Errorf("a search shows Tasks, and user %q cannot list resource \"tasks\" in API group %q %s: %s", user.GetName(), taskv1.GroupName, scope, reason))
}
