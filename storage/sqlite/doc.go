// Package sqlite keeps the store in one SQLite file.
//
// The file runs in WAL mode with synchronous=FULL on every connection, so that
// a batch is durable when its COMMIT returns. One connection writes; a small
// pool reads beside it; one more copies the WAL into the file in the
// background, because a checkpoint inside COMMIT would hold up a batch for
// tens of milliseconds.
//
// All of them are the driver's raw connections: database/sql costs more than
// SQLite itself on this path. Statements that change rows go through the
// driver's Query, which binds and steps in one crossing into C.
//
// A lock on FILE.lock, held by the operating system for as long as the process
// lives, keeps a second process out; ownership therefore needs no term. The
// lock is not on the database file itself: closing any descriptor of that file
// would drop SQLite's own POSIX locks.
package sqlite
