// Package v1 is version v1 of the API group example.example.com: the Task.
//
// It holds the type, the names that are part of the contract (labels,
// finalizer, conditions, Event reasons) and the validation that schema and CEL
// express in the CustomResourceDefinition, once more in Go, for API servers
// that have no such definition. The operator, the aggregated API and clients
// import it; it imports nothing of theirs and talks to nobody.
//
// The deep copies and the CustomResourceDefinition are generated from it with
// `make generate`.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.example.example.v1
// +groupName=example.example.com
package v1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd paths=. output:crd:dir=../../../manifests/crds
