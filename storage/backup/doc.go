// Package backup writes a store's whole key space at one revision into a file,
// and brings such a file back into databases of any kind and number.
//
// # The file
//
// A line that names the format, then a gzip stream of frames: a length
// (uvarint), a type (one byte) and that many bytes.
//
//	H  a header, JSON: when, from which program, the revision
//	K  a row: etcd's mvccpb.KeyValue with create and mod revision, version and
//	   lease, in order of mod revisions
//	L  a lease, JSON: ID, granted time, time that was left
//	E  the end, JSON: the counts and the SHA-256 of every byte before this frame
//
// A file that was cut off has no end, and one that was changed another sum:
// [Check] reads all of it, and [Restore] does so before it changes anything.
//
// # Revisions
//
// What a store has shown after the backup was taken is not in it, but clients
// hold those revisions. A restored store therefore goes on far above all of
// them, and everything below is compacted: a client that comes with an old
// revision is told to list again.
package backup
