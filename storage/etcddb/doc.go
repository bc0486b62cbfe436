// Package etcddb keeps a part of the store in an etcd: an embedded one (package
// etcd) or an existing cluster.
//
// Values lie byte for byte under their own keys, so that whoever reads that
// etcd directly sees them. Beside each value, in the same transaction, lies a
// sidecar with the numbers that the engine gave it. Sidecars and what else is
// ours begin with [Prefix]; no range of the store's shows them. A sidecar is
// current exactly if the etcd revision that it speaks of (its own, or the one
// that it names) is the value's.
//
// An etcd that has data already is adopted without a write: a key without a
// sidecar has etcd's own numbers. Others may go on writing, and leases of that
// etcd go on to expire; such changes are seen by a watch and handed to the
// engine (backend.Shared), which gives them revisions; the sidecar that then
// describes a change names the etcd revision at which it happened.
//
// What the versions of all keys are is kept in memory, as etcd itself does,
// read when the database is acquired and followed from then on; values are read
// from etcd's own history. Compaction of the engine drives etcd's.
package etcddb
