// Package stored is the resources clustertasks and customtasks: kinds with
// Task's spec that the aggregated API stores itself, by Kubernetes' generic
// registry over an etcd endpoint.
//
// What they depend on is the example of what an aggregated API can do and a
// custom resource can't: a write that would close a cycle is refused while no
// other such write goes on ([Relations]), and what follows for a task, from
// tasks that others write, stands in its status.
//
// All that the two differ in is in [Kind]. Validation, defaults and labels are
// Task's own, from package operator/api/v1; there is no webhook in front.
package stored
