package backend

// State is the meta row.
type State struct {
	Epoch   int64 // number of the ownership; each Acquire raises it
	LastRev int64 // newest revision stored here; 1 in an empty database
	LastID  int64 // ID of the newest version; 0 in an empty database
	Floor   int64 // the engine's compaction mark: one above the oldest readable revision; 0 at first, never lower later
	Swept   int64 // the engine's: how far the compaction's deletion has come
}

// Version is what one transaction did to one key: an immutable row.
type Version struct {
	ID      int64 // dense in order of commit, from 1
	Rev     int64 // the revision that the transaction got
	Sub     int64 // position within the revision, from 0
	Prev    int64 // ID of the version that it replaced; 0 if the key was absent
	Create  int64 // create_revision; 0 in a tombstone
	Version int64 // etcd's version of the key; 0 in a tombstone
	Lease   int64 // 0: none
	Deleted bool  // a tombstone: the key is absent from Rev on
	Key     []byte
	Value   []byte // nil where a call does not read values, and in tombstones
	// Mark is not 0 in a change that others made (see Shared): Change.Mark.
	// The change is stored; Apply adds its numbers. Reads leave it 0.
	Mark int64
}

// Batch is what one database transaction stores. Every field may be empty; a
// batch without versions changes neither LastRev nor LastID.
type Batch struct {
	// AfterID is the LastID that the database must be at. The IDs of Versions
	// follow it without a gap.
	AfterID int64
	// LastRev is what meta's last_rev becomes: the newest revision of
	// Versions, or the present one without any.
	LastRev int64
	// Versions are inserted. Their revisions never decrease.
	Versions []Version
	// PutLeases are inserted, or replace the row of the same ID.
	PutLeases []Lease
	// DeleteLeases are removed; one that is not there is no error.
	DeleteLeases []int64
	// Floor becomes meta's floor where it is not 0.
	Floor int64
	// Sweep are IDs of versions that compaction removes; one that is not
	// there is no error.
	Sweep []int64
	// Swept becomes meta's swept where it is not 0.
	Swept int64
	// Foreign is how many of the changes that Shared.Foreign returns, from
	// the first, are dealt with once the batch is stored.
	Foreign int
}

// Lease is a lease's row. Keys refer to it by Version.Lease.
type Lease struct {
	ID       int64
	TTL      int64 // granted, in seconds
	Deadline int64 // when it expires: Unix time in milliseconds
}

// Limits bound a batch. Zero means no bound of the database's own.
type Limits struct {
	KeyBytes   int // longest key that the index takes
	ValueBytes int // longest value
	BatchBytes int // sum of keys and values of one Apply, beside one version's
	// Versions is the most versions of one Apply. A single transaction may
	// have more, up to Transaction, if it is alone in its Apply.
	Versions, Transaction int
	// KeyOnce says that a key may be only once in an Apply.
	KeyOnce bool
}

// Size is how large a database is, in bytes.
type Size struct {
	Allocated int64 // what it occupies
	InUse     int64 // what of it holds data
}

// LastID is the LastID after the batch.
func (b *Batch) LastID() int64 { return b.AfterID + int64(len(b.Versions)) }
