// Package postgres keeps the store in a PostgreSQL database, 13 or newer.
//
// A batch is one write to the socket: BEGIN, the session's settings, the
// compare-and-advance of the meta row, one INSERT that unnests arrays, the
// deletes of a compaction, COMMIT. So it costs one round trip and one flush of
// the server's log, and its outcome is unknown only from the write to the
// answer.
//
// Nothing relies on the state of a connection: names are qualified, isolation,
// synchronous_commit and time limits are set within each transaction, there is
// no advisory lock that outlives one. On a direct connection statements are
// prepared; behind a proxy (which shows by a process number that is not the
// server's) they are sent unnamed, so that a pooler in transaction mode may
// spread the transactions over its connections as it likes.
//
// Keys and values are bytea: no collation, no encoding, no time zone.
package postgres
