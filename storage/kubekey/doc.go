// Package kubekey knows how Kubernetes lays out its keys in etcd, in both
// directions: which group, resource, namespace and name a key stands for, and
// under which prefix a resource is stored. It knows names only, neither types
// nor values. The routes of the store, the topology file and
// `taskctl storage explain` use it.
//
// The layout is kube-apiserver's (k8s.io/kubernetes,
// pkg/kubeapiserver/default_storage_factory_builder.go and
// k8s.io/apiserver, pkg/registry/generic/registry): built-in resources lie
// under /registry/RESOURCE/, a few under another word; custom resources, CRDs,
// APIServices and the resources of aggregated servers under
// /registry/GROUP/RESOURCE/. A namespace and the name follow.
package kubekey
