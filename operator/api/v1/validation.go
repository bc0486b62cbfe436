package v1

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateTaskSpec checks what the schema and the CEL rules of the Task's
// CustomResourceDefinition check, for API servers of other kinds with the same
// spec. The spec must have been defaulted. path is the spec's own path,
// usually field.NewPath("spec").
func ValidateTaskSpec(spec *TaskSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Priority < MinPriority || spec.Priority > MaxPriority {
		errs = append(errs, field.Invalid(path.Child("priority"), spec.Priority,
			fmt.Sprintf("must be between %d and %d", MinPriority, MaxPriority)))
	}
	errs = append(errs, validateDeadline(spec, path.Child("deadline"))...)
	switch spec.TaskState {
	case TaskStatePending, TaskStateFinished:
	default:
		errs = append(errs, field.NotSupported(path.Child("taskState"), spec.TaskState,
			[]TaskState{TaskStatePending, TaskStateFinished}))
	}
	if ttl := spec.TTLSecondsAfterFinished; ttl != nil && *ttl < 0 {
		errs = append(errs, field.Invalid(path.Child("ttlSecondsAfterFinished"), *ttl, "must be 0 or greater"))
	}
	return errs
}

func validateDeadline(spec *TaskSpec, path *field.Path) field.ErrorList {
	switch {
	case spec.Deadline.IsZero():
		return field.ErrorList{field.Required(path, "")}
	case spec.Deadline.Unix() < 0:
		return field.ErrorList{field.Invalid(path, spec.Deadline.UTC().Format(time.RFC3339), "must be 1970-01-01T00:00:00Z or later")}
	case spec.Deadline.UTC().Year() > 9999:
		return field.ErrorList{field.Invalid(path, spec.Deadline.Unix(), "must be 9999-12-31T23:59:59Z or earlier")}
	}
	return nil
}

// DeadlineWarnings says what needs a clock: that a pending task is overdue at
// once because it is created with a deadline in the past, or because its
// deadline is moved there. old is nil on create. Such a deadline is valid, but
// is often a typing error, so whoever writes it is told.
func DeadlineWarnings(spec, old *TaskSpec, now time.Time) []string {
	if spec.TaskState == TaskStateFinished || spec.Deadline.Time.After(now) {
		return nil
	}
	if old != nil && old.Deadline.Time.Equal(spec.Deadline.Time) {
		return nil
	}
	return []string{fmt.Sprintf("spec.deadline: %s is in the past: the task is overdue at once",
		spec.Deadline.UTC().Format(time.RFC3339))}
}
