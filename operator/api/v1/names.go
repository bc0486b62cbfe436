package v1

// Labels.
const (
	// LabelPriority carries spec.priority in decimal on every Task, so that
	// Tasks can be selected by it. The defaulting webhook sets it.
	LabelPriority = "example.example.com/priority"
	// LabelDeadline carries spec.deadline as Unix time in seconds on every
	// Task. The defaulting webhook sets it.
	LabelDeadline = "example.example.com/deadline"
	// LabelTaskUID carries the UID of the Task that an Event is about. It is
	// what joins Events and Tasks: names can be reused, UIDs can't.
	LabelTaskUID = "example.example.com/task-uid"
)

// Finalizer keeps a deleted Task until its TaskDeleted Event is stored.
const Finalizer = "example.example.com/finalizer"

// Condition types of a Task.
const (
	// ConditionReady is True once the controller has announced the generation
	// named in the condition, and False while its Events are refused.
	ConditionReady = "Ready"
	// ConditionOverdue is True while the deadline of an unfinished Task has
	// passed.
	ConditionOverdue = "Overdue"
)

// Reasons of the Ready condition.
const (
	// ReasonObserved: everything about this generation is announced.
	ReasonObserved = "Observed"
	// ReasonEventRefused: the API server refuses the Task's Events, so nothing
	// more is announced until it accepts them.
	ReasonEventRefused = "EventRefused"
)

// Reasons of the Overdue condition.
const (
	// ReasonDeadlinePassed: the Task is unfinished and its deadline has passed.
	ReasonDeadlinePassed = "DeadlinePassed"
	// ReasonDeadlineAhead: the deadline has not passed yet.
	ReasonDeadlineAhead = "DeadlineAhead"
	// ReasonFinished: a finished Task is never overdue.
	ReasonFinished = "Finished"
)

// Reasons of the Events on a Task.
const (
	// ReasonTaskCreated: the controller saw the Task for the first time.
	ReasonTaskCreated = "TaskCreated"
	// ReasonTaskUpdated: the spec changed, other than by finishing the Task.
	ReasonTaskUpdated = "TaskUpdated"
	// ReasonTaskFinished: taskState became Finished.
	ReasonTaskFinished = "TaskFinished"
	// ReasonTaskOverdue: the deadline of an unfinished Task passed. A warning.
	ReasonTaskOverdue = "TaskOverdue"
	// ReasonTaskDeleted: the Task is being deleted. A warning.
	ReasonTaskDeleted = "TaskDeleted"
)
