// Package verify checks that what the databases of a store hold obeys the
// store's rules: the order of revisions, each key in the one backend that its
// route names, versions that follow each other, leases that exist, and the
// numbers that each database keeps of itself. It reads everything, changes
// nothing, and goes on after what it finds.
//
// It is used on databases whose store is closed, and on those of a running one:
// there it looks at the state of the moment when it began, and the caller keeps
// a compaction from deleting what that state is compared with.
package verify
