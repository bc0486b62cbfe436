package v1

import (
	"maps"
	"strconv"
)

// DefaultTaskSpec fills in what the user left out. The
// CustomResourceDefinition's defaults do the same for Tasks.
func DefaultTaskSpec(spec *TaskSpec) {
	if spec.TaskState == "" {
		spec.TaskState = TaskStatePending
	}
}

// TaskLabels are the labels that make a spec selectable: LabelPriority, and
// LabelDeadline unless the deadline is missing or before 1970. Neither kind of
// spec is valid, and a negative number is no valid label value: whoever sets
// the labels before validation must get past it for validation to name the
// field.
func TaskLabels(spec *TaskSpec) map[string]string {
	labels := map[string]string{LabelPriority: strconv.Itoa(int(spec.Priority))}
	if spec.Priority < 0 {
		delete(labels, LabelPriority)
	}
	if unix := spec.Deadline.Unix(); !spec.Deadline.IsZero() && unix >= 0 {
		labels[LabelDeadline] = strconv.FormatInt(unix, 10)
	}
	return labels
}

// SetTaskLabels returns labels with TaskLabels(spec) set. It never changes the
// map that it is given, and returns that very map when nothing is to be set.
func SetTaskLabels(labels map[string]string, spec *TaskSpec) map[string]string {
	wanted := TaskLabels(spec)
	missing := false
	for key, value := range wanted {
		if labels[key] != value {
			missing = true
		}
	}
	if !missing {
		return labels
	}
	result := maps.Clone(labels)
	if result == nil {
		result = make(map[string]string, len(wanted))
	}
	maps.Copy(result, wanted)
	return result
}
