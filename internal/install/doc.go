// Package install puts the YAML of package manifests into a cluster and takes
// parts of it out again. It owns no YAML: what is applied stands in manifests.
//
// The supervisor uses it in the order of a start:
//
//	RemoveStale  registrations that an earlier run left behind go
//	Apply        CustomResourceDefinitions, RBAC and policies; served when it returns
//	Register     APIService and webhook configurations of this run, once what they
//	             point at answers; it returns when requests really get there
//	Unregister   first of all when the appliance stops
//
// Every function is idempotent, takes an administrator's rest.Config, and is
// limited by its context alone.
package install
