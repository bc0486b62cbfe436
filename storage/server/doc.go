// Package server answers the etcd v3 gRPC API (KV, Watch, Lease, Maintenance,
// Cluster, health) from a [Store]. It validates requests as etcd does, with
// etcd's own error codes and texts, and knows nothing of databases.
package server
