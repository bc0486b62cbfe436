package operator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// TestAPI checks what the API server does with Tasks and with the operator's
// identity, by manifests alone: no operator runs.
func TestAPI(t *testing.T) {
	e := newEnvironment(t)
	t.Run("the operator may do what it does and no more", func(t *testing.T) { operatorAccess(t, e) })
	t.Run("the operator cannot read Secrets", func(t *testing.T) { noSecrets(t, e) })
	t.Run("bad Tasks are refused by the field's name", func(t *testing.T) { refusesBadTasks(t, e) })
	t.Run("priority 0 survives a Go client", func(t *testing.T) { keepsPriorityZero(t, e) })
	t.Run("labels that contradict the spec are refused", func(t *testing.T) { refusesWrongLabels(t, e) })
	t.Run("Tasks are selected by fields", func(t *testing.T) { selectsByField(t, e) })
}

func operatorAccess(t *testing.T, e *environment) {
	c, err := kubernetes.NewForConfig(e.operator)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		group, resource, subresource string
		may, mayNot                  []string
	}{
		{group: "example.example.com", resource: "tasks", may: []string{"list", "watch", "patch", "delete"}, mayNot: []string{"create", "update", "get", "deletecollection"}},
		{group: "example.example.com", resource: "tasks", subresource: "status", may: []string{"patch"}, mayNot: []string{"update"}},
		{resource: "events", may: []string{"create"}, mayNot: []string{"get", "list", "watch", "update", "patch", "delete"}},
		{resource: "secrets", mayNot: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		{resource: "pods", mayNot: []string{"get", "list", "create"}},
		{resource: "namespaces", may: []string{"list", "watch"}, mayNot: []string{"get", "create", "update", "patch", "delete"}},
		{group: "rbac.authorization.k8s.io", resource: "clusterroles", mayNot: []string{"get", "create", "escalate", "bind"}},
	}
	ask := func(group, resource, subresource, verb string) bool {
		review, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "default", Verb: verb, Group: group, Resource: resource, Subresource: subresource,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	for _, test := range tests {
		for _, verb := range test.may {
			if !ask(test.group, test.resource, test.subresource, verb) {
				t.Errorf("it may not %s %s/%s", verb, test.resource, test.subresource)
			}
		}
		for _, verb := range test.mayNot {
			if ask(test.group, test.resource, test.subresource, verb) {
				t.Errorf("it may %s %s/%s", verb, test.resource, test.subresource)
			}
		}
	}
}

func noSecrets(t *testing.T, e *environment) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "operator-test-"}, StringData: map[string]string{"key": "value"}}
	if err := e.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(e.operator)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Secrets(secret.Namespace).Get(t.Context(), secret.Name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("reading a Secret: %v", err)
	}
	if _, err := c.CoreV1().Secrets("taskctl-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets: %v", err)
	}
}

func refusesBadTasks(t *testing.T, e *environment) {
	c, err := dynamic.NewForConfig(e.admin)
	if err != nil {
		t.Fatal(err)
	}
	namespace := e.namespace(t)
	tests := map[string]struct {
		spec  string
		field string // "" means accepted
	}{
		"the smallest spec":            {spec: `{"priority":0,"deadline":"2030-01-01T00:00:00Z"}`},
		"a deadline with zone":         {spec: `{"priority":1,"deadline":"2030-01-01T00:00:00.25+05:30"}`},
		"a deadline in the past":       {spec: `{"priority":1,"deadline":"1970-01-01T00:00:00Z"}`},
		"priority 11":                  {spec: `{"priority":11,"deadline":"2030-01-01T00:00:00Z"}`, field: "spec.priority"},
		"priority -1":                  {spec: `{"priority":-1,"deadline":"2030-01-01T00:00:00Z"}`, field: "spec.priority"},
		"priority 1.5":                 {spec: `{"priority":1.5,"deadline":"2030-01-01T00:00:00Z"}`, field: "spec.priority"},
		"no priority":                  {spec: `{"deadline":"2030-01-01T00:00:00Z"}`, field: "spec.priority"},
		"no deadline":                  {spec: `{"priority":1}`, field: "spec.deadline"},
		"a deadline that is no time":   {spec: `{"priority":1,"deadline":"tomorrow"}`, field: "spec.deadline"},
		"a deadline without zone":      {spec: `{"priority":1,"deadline":"2030-01-01T00:00:00"}`, field: "spec.deadline"},
		"a deadline in lower case":     {spec: `{"priority":1,"deadline":"2030-01-01t00:00:00z"}`, field: "spec.deadline"},
		"a deadline in a leap second":  {spec: `{"priority":1,"deadline":"2030-06-30T23:59:60Z"}`, field: "spec.deadline"},
		"a deadline on 30 February":    {spec: `{"priority":1,"deadline":"2030-02-30T00:00:00Z"}`, field: "spec.deadline"},
		"a deadline before 1970":       {spec: `{"priority":1,"deadline":"1969-12-31T23:59:59Z"}`, field: "spec.deadline"},
		"a deadline after 9999 in UTC": {spec: `{"priority":1,"deadline":"9999-12-31T23:59:59-01:00"}`, field: "spec.deadline"},
		"an unknown taskState":         {spec: `{"priority":1,"deadline":"2030-01-01T00:00:00Z","taskState":"Done"}`, field: "spec.taskState"},
		"a negative time to live":      {spec: `{"priority":1,"deadline":"2030-01-01T00:00:00Z","ttlSecondsAfterFinished":-1}`, field: "spec.ttlSecondsAfterFinished"},
		"a time to live over 2^31":     {spec: `{"priority":1,"deadline":"2030-01-01T00:00:00Z","ttlSecondsAfterFinished":3000000000}`, field: "spec.ttlSecondsAfterFinished"},
		"no spec":                      {spec: `null`, field: "spec"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			task := &unstructured.Unstructured{}
			content := fmt.Sprintf(`{"apiVersion":"example.example.com/v1","kind":"Task","metadata":{"generateName":"task-"},"spec":%s}`, test.spec)
			if err := json.Unmarshal([]byte(content), &task.Object); err != nil {
				t.Fatal(err)
			}
			created, err := c.Resource(taskv1.Resource("tasks")).Namespace(namespace).Create(t.Context(), task, metav1.CreateOptions{})
			if test.field == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				if state, _, _ := unstructured.NestedString(created.Object, "spec", "taskState"); state != "Pending" {
					t.Errorf("taskState is %q", state)
				}
				return
			}
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field+":") {
				t.Errorf("want a refusal that names %s, got %v", test.field, err)
			}
		})
	}
	// What was accepted can be read by a typed client, all of it at once.
	var list taskv1.TaskList
	if err := e.client.List(t.Context(), &list); err != nil {
		t.Errorf("a Go client can't read what was accepted: %v", err)
	}
}

func keepsPriorityZero(t *testing.T, e *environment) {
	task := e.create(t, e.namespace(t), func(task *taskv1.Task) { task.Spec.Priority = 0 })
	task.Spec.Details = "Now with other words."
	if err := e.client.Update(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	e.get(t, task)
	if task.Spec.Priority != 0 || task.Spec.Details != "Now with other words." {
		t.Errorf("spec is %+v", task.Spec)
	}
}

func refusesWrongLabels(t *testing.T, e *environment) {
	namespace := e.namespace(t)
	deadline := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	with := func(key, value string) func(*taskv1.Task) {
		return func(task *taskv1.Task) {
			task.Name, task.GenerateName = "labelled", ""
			task.Spec.Deadline.Time = deadline
			task.Labels = map[string]string{key: value}
		}
	}
	task := e.create(t, namespace, with(taskv1.LabelPriority, "3"))
	tests := map[string]struct {
		patch   string
		refused string // part of the message; "" means accepted
	}{
		"the right deadline":               {patch: `{"metadata":{"labels":{"example.example.com/deadline":"1893456000"}}}`},
		"a wrong deadline":                 {patch: `{"metadata":{"labels":{"example.example.com/deadline":"1893456001"}}}`, refused: "1893456000"},
		"a wrong priority":                 {patch: `{"metadata":{"labels":{"example.example.com/priority":"4"}}}`, refused: "spec.priority"},
		"another priority, the same label": {patch: `{"spec":{"priority":4}}`, refused: "spec.priority"},
		"both changed":                     {patch: `{"spec":{"priority":4},"metadata":{"labels":{"example.example.com/priority":"4"}}}`},
		"a label of somebody else":         {patch: `{"metadata":{"labels":{"team":"blue"}}}`},
		"no labels":                        {patch: `{"metadata":{"labels":null}}`},
	}
	// The policy takes effect a moment after the API server has read it.
	eventually(t, "the policy is in force", func() error {
		err := e.client.Patch(t.Context(), task.DeepCopy(), labelPatch(taskv1.LabelPriority, "10"))
		if apierrors.IsInvalid(err) {
			return nil
		}
		return fmt.Errorf("a wrong label was let through: %v", err)
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := e.client.Patch(t.Context(), task.DeepCopy(), rawMergePatch(test.patch), dryRun())
			switch {
			case test.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("want a refusal with %q, got %v", test.refused, err)
			}
		})
	}
}

func selectsByField(t *testing.T, e *environment) {
	namespace := e.namespace(t)
	for priority := range int32(4) {
		e.create(t, namespace, func(task *taskv1.Task) {
			task.Spec.Priority = priority
			if priority == 2 {
				task.Spec.TaskState = taskv1.TaskStateFinished
			}
		})
	}
	for selector, want := range map[string]int{
		"spec.priority=0":                          1,
		"spec.priority!=3":                         3,
		"spec.taskState=Pending":                   3,
		"spec.taskState=Finished,spec.priority=2":  1,
		"spec.taskState=Finished,spec.priority!=2": 0,
	} {
		var list taskv1.TaskList
		if err := e.client.List(t.Context(), &list, inNamespace(namespace), fieldSelector(t, selector)); err != nil {
			t.Errorf("%s: %v", selector, err)
		}
		if len(list.Items) != want {
			t.Errorf("%s selects %d Tasks, want %d", selector, len(list.Items), want)
		}
	}
}
