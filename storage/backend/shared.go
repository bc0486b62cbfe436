package backend

// Shared is what a session also implements if others may write to its database
// beside the engine. Their changes have no revision of the engine's until it
// gives them one: it puts them, in order, at the front of its next batch.
type Shared interface {
	// Foreign returns changes by others that no stored batch has dealt with
	// (Batch.Foreign), oldest first, in the order in which they happened.
	// More may follow; the engine asks again with each batch.
	Foreign() []Change
	// Notify makes fn be called whenever Foreign has something new, and at
	// once if it has something already. fn does not block.
	Notify(fn func())
}

// Change is what somebody else did to one key.
type Change struct {
	// Mark identifies the transaction that made the change; it is not 0 and
	// rises. All changes of one transaction follow each other.
	Mark    int64
	Key     []byte
	Value   []byte // nil in a deletion
	Lease   int64  // the database's own lease, 0 if none
	Deleted bool
}
