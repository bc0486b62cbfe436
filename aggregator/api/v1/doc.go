// Package v1 is version v1 of the aggregated API group
// search.task.example.example.com.
//
// It holds the types that clients send and receive, nothing else: no server,
// no storage, no clients. The version is also the version that the server
// works with in memory: there is one version, so a second set of types would
// only be copied to and fro.
//
// Deep copies, OpenAPI definitions and model names are generated from it with
// `make generate`.
//
// +kubebuilder:object:generate=true
// +groupName=search.task.example.example.com
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.example.example.task.search.v1
package v1
