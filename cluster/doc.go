// Package cluster is a real Kubernetes control plane for Go tests: etcd,
// kube-apiserver and kube-controller-manager in the test's own process, without
// downloads, containers or privileges.
//
//	config := cluster.StartForTest(t, cluster.Options{CRDDirs: []string{"../manifests/crds"}})
//	client, err := client.New(config, client.Options{})
//
// There are no nodes: Pods stay Pending, and everything else works as in a
// cluster: RBAC, admission, custom resources, aggregation, namespace deletion,
// garbage collection, service-account tokens, quotas.
//
// Kubernetes keeps state for the whole process (klog, feature gates), so one
// control plane runs at a time in a process; [Start] waits for the one before
// to stop. Tests in several packages run in several processes anyway.
package cluster
