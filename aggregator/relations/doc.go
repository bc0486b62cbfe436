// Package relations is a directed graph of tasks that depend on one another by
// name, many to many, with an index the other way round. It answers what a
// custom resource's schema can't: whether a new dependency would close a cycle,
// what blocks a task, and how many depend on it.
//
// Whoever stores tasks keeps it up to date, in order, with [Graph.Replace],
// [Graph.Set] and [Graph.Remove], usually from a watch, and says with
// [Graph.Wrote] what it has just written itself, which the watch will tell in a
// moment. Names may be of tasks that don't exist (yet).
//
// The package knows neither Kubernetes' types nor where tasks are stored. It
// starts no goroutine, and what it calls back must not call it.
package relations
