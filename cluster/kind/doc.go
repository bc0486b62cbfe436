// Package kind runs a real kind cluster, one node in a container, whose
// kube-apiserver stores in an etcd endpoint of this process.
//
// The supervisor uses it as the other source of an API server beside
// cluster/embedded. The node finds the store by its unix socket, whose folder
// is mounted into it, and it has this appliance's certificate authorities and
// service-account key, so that every identity of internal/pki works on it.
//
// kind itself creates the node (sigs.k8s.io/kind). Everything that it lacks is
// here: finding an engine that really answers, pulling with progress, stopping
// and starting the same node, telling ours from a foreign one of the same name,
// clearing a store of a node that is gone, loading images, and errors that say
// what to do. A container that is not ours is never touched.
package kind
