// Package storage is the etcd-compatible store: what the cluster knows of it
// is an [Endpoint]. One folder a backend lies below it.
//
// The package knows keys and bytes, never Kubernetes types.
package storage
