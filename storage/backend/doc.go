// Package backend is what the storage engine (package mvcc) asks of a
// database. The engine knows revisions, watches and leases and no SQL; a
// database knows rows and no etcd.
//
// A database holds one append-only table of versions: what one transaction did
// to one key is one immutable row. Rows have dense, increasing IDs in the order
// of their commits, given out by the engine; the revision is a column beside.
// Because rows only ever come behind the last one and IDs are dense, one
// compare on the meta row (epoch, last ID) proves that the engine's memory is
// what the database holds: whoever else wrote, or whatever of ours arrived
// late, has moved the last ID or the epoch, and the batch is refused by the
// database itself.
//
// A database is owned by one process at a time. [Database.Acquire] takes
// ownership: it ends what is left of former sessions, raises the epoch in a
// committed transaction and only then looks at what is stored. It is how the
// engine starts, and how it finds out what became of a commit whose answer was
// lost: after Acquire has returned, no batch of an older session can arrive.
package backend
