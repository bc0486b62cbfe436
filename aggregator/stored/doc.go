// Package stored is the resources clustertasks and customtasks: kinds with
// Task's spec that the aggregated API stores itself, by Kubernetes' generic
// registry over an etcd endpoint.
//
// All that the two differ in is in [Kind]. Validation, defaults and labels are
// Task's own, from package operator/api/v1; there is no webhook in front.
package stored
