// Package combinedtask is the resource combinedtasks: each Task with the Events
// that are about it.
//
// The [Join] is fed by two reflectors, one of Tasks and one of the Events that
// carry the label example.example.com/task-uid, and keeps the combined objects
// in a [view.View]. A read costs no request for any Task or Event, except for
// one get of the Task when a CombinedTask is read by name. [NewREST] serves it,
// and gives nobody more than they could read in the two halves.
//
// Tasks and Events are matched by UID and namespace: by UID, so that the Events
// of a Task that was deleted and created again under the same name don't mix;
// by namespace, so that nobody's Event shows up, through a label with a foreign
// UID, to readers who may not read Events where it is.
//
// [view.View]: https://pkg.go.dev/github.com/taskctl-dev/taskctl/aggregator/view
package combinedtask
