// Package mvcc keeps etcd's key space over databases: one sequence of
// revisions, snapshots, watches and leases, for any number of backends.
package mvcc
