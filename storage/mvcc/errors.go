package mvcc

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errClosed is the answer of a store that was closed.
var errClosed = errors.New("the store is closed")

// errDown names the backend that cannot answer. Its code is one that etcd's
// client does not retry: it would ask a hundred times (Unavailable) for what
// is known not to work.
func errDown(backend, reason string) error {
	return status.Error(codes.FailedPrecondition,
		fmt.Sprintf("storage backend %q cannot answer: %s", backend, reason))
}

func errTwoBackends(a, b string) error {
	return status.Error(codes.InvalidArgument,
		fmt.Sprintf("a transaction over two storage backends (%q and %q) is not possible; route its keys to one", a, b))
}

func errTooLong(what string, length, limit int) error {
	return status.Error(codes.InvalidArgument,
		fmt.Sprintf("etcdserver: %s is too long: %d bytes, the database takes at most %d", what, length, limit))
}

// errBatchFull says that a job has to wait for the next batch.
var errBatchFull = errors.New("the batch is full")

func errTooManyWrites(backend string, count, limit int) error {
	return status.Error(codes.InvalidArgument,
		fmt.Sprintf("etcdserver: a transaction that changes %d keys is too large: storage backend %q takes at most %d", count, backend, limit))
}

func errKeyTwice(backend, key string) error {
	return status.Error(codes.InvalidArgument,
		fmt.Sprintf("etcdserver: a transaction that changes the key %q twice is not possible in storage backend %q", key, backend))
}

// ErrWatcherDuplicateID is etcd's answer to a watch whose ID is in use.
var ErrWatcherDuplicateID = errors.New("mvcc: duplicate watch ID provided on the WatchStream")

var (
	errEmptyWatch = errors.New("mvcc: watcher range is empty")
	errNoWatch    = errors.New("mvcc: watcher does not exist")
)

var errNoHash = status.Error(codes.Unimplemented, "etcdserver: a store of several backends has no hash")
