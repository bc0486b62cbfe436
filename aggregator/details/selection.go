package details

import (
	"strconv"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

func newSearch(namespace, query string, options *metainternalversion.ListOptions) search {
	s := search{namespace: namespace, query: query}
	if options.LabelSelector != nil {
		s.labels = options.LabelSelector.String()
	}
	if options.FieldSelector != nil {
		s.fields = options.FieldSelector.String()
	}
	return s
}

// keep tells which Tasks a request asks for, besides its query.
func keep(namespace string, options *metainternalversion.ListOptions) func(*taskv1.Task) bool {
	byLabel, byField := labels.Everything(), fields.Everything()
	if options.LabelSelector != nil {
		byLabel = options.LabelSelector
	}
	if options.FieldSelector != nil {
		byField = options.FieldSelector
	}
	return func(task *taskv1.Task) bool {
		if namespace != "" && task.Namespace != namespace || !byLabel.Matches(labels.Set(task.Labels)) {
			return false
		}
		return byField.Empty() || byField.Matches(fields.Set{
			"metadata.name":      task.Name,
			"metadata.namespace": task.Namespace,
			"spec.priority":      strconv.FormatInt(int64(task.Spec.Priority), 10),
			"spec.taskState":     string(task.Spec.TaskState),
		})
	}
}
