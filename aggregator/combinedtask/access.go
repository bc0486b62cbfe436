package combinedtask

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// access checks that the join gives nobody more than they have: who reads
// combined objects must be allowed to read both halves in the same way, in the
// same namespace. The right on combinedtasks itself was checked before.
type access struct {
	authorizer authorizer.Authorizer
}

// get needs to get this Task, and to list the Events of its namespace, which
// can't be narrowed to those of one Task.
func (a access) get(ctx context.Context, namespace, name string) error {
	return a.both(ctx, name, tasks("get", namespace, name), events("list", namespace))
}

// list needs to list both.
func (a access) list(ctx context.Context, namespace string) error {
	name := requestedName(ctx)
	return a.both(ctx, name, tasks("list", namespace, name), events("list", namespace))
}

// watch needs to watch both.
func (a access) watch(ctx context.Context, namespace string) error {
	name := requestedName(ctx)
	return a.both(ctx, name, tasks("watch", namespace, name), events("watch", namespace))
}

// requestedName is the one name that a list or watch is limited to by its field
// selector, if any; roles that name their objects allow such requests only.
func requestedName(ctx context.Context) string {
	if info, found := genericapirequest.RequestInfoFrom(ctx); found {
		return info.Name
	}
	return ""
}

func tasks(verb, namespace, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		Verb:            verb,
		Namespace:       namespace,
		APIGroup:        taskv1.GroupName,
		APIVersion:      taskv1.GroupVersion().Version,
		Resource:        "tasks",
		Name:            name,
		ResourceRequest: true,
	}
}

func events(verb, namespace string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		Verb:            verb,
		Namespace:       namespace,
		APIVersion:      "v1",
		Resource:        "events",
		ResourceRequest: true,
	}
}

func (a access) both(ctx context.Context, name string, needed ...authorizer.AttributesRecord) error {
	user, found := genericapirequest.UserFrom(ctx)
	if !found {
		return apierrors.NewInternalError(errors.New("a request without a user reached the join"))
	}
	for _, attributes := range needed {
		attributes.User = user
		decision, reason, err := a.authorizer.Authorize(ctx, attributes)
		if decision == authorizer.DecisionAllow {
			continue
		}
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("ask whether the request is allowed: %w", err))
		}
		return forbidden(name, attributes, reason)
	}
	return nil
}

func forbidden(name string, attributes authorizer.AttributesRecord, reason string) error {
	scope := "at the cluster scope"
	if attributes.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", attributes.Namespace)
	}
	err := fmt.Errorf("a CombinedTask joins Tasks and Events, and user %q cannot %s resource %q in API group %q %s",
		attributes.User.GetName(), attributes.Verb, attributes.Resource, attributes.APIGroup, scope)
	if reason != "" {
		err = fmt.Errorf("%w: %s", err, reason)
	}
	return apierrors.NewForbidden(searchv1.Resource(resourceName), name, err)
}
