package server

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Store is what the gRPC services need of the engine behind them. Requests and
// answers are etcd's own messages, so nothing is converted on the way; headers
// carry only the revision, the services add the rest.
//
// Errors are etcd's typed ones (go.etcd.io/etcd/api/v3/v3rpc/rpctypes); any
// other error is an internal one. Every method may be called concurrently.
type Store interface {
	// Range answers at req.Revision, or at the newest revision that was
	// acknowledged when the call arrived or later. It covers every option
	// of the request, RangeStream included (the service cuts the answer).
	Range(ctx context.Context, req *pb.RangeRequest) (*pb.RangeResponse, error)
	// Txn runs one transaction; Put and DeleteRange arrive as transactions
	// of one operation. It returns once the result is durable. The header
	// of a transaction that wrote is exactly its own revision, that of one
	// that wrote nothing is a read's.
	Txn(ctx context.Context, req *pb.TxnRequest) (*pb.TxnResponse, error)
	// Compact makes revisions below req.Revision unreadable and returns;
	// with req.Physical it returns when the space was given back.
	Compact(ctx context.Context, req *pb.CompactionRequest) (*pb.CompactionResponse, error)
	// NewWatchStream returns a stream of watches; the caller closes it.
	NewWatchStream() WatchStream

	LeaseGrant(ctx context.Context, req *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error)
	LeaseRevoke(ctx context.Context, req *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error)
	// LeaseKeepAlive renews one lease once; TTL is 0 when it does not exist.
	LeaseKeepAlive(ctx context.Context, req *pb.LeaseKeepAliveRequest) (*pb.LeaseKeepAliveResponse, error)
	LeaseTimeToLive(ctx context.Context, req *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error)
	LeaseLeases(ctx context.Context, req *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error)

	// Status reports revision and true sizes in bytes, from memory.
	Status(ctx context.Context) (Status, error)
	// Defragment gives unused space back to the file system where it can.
	Defragment(ctx context.Context) error
	// HashKV is etcd's hash over the key space at a revision (0: the newest).
	HashKV(ctx context.Context, revision int64) (hash uint32, hashRevision, compactRevision int64, err error)
}

// Status is a Store's condition.
type Status struct {
	Revision  int64
	Size      int64 // bytes allocated by the databases
	SizeInUse int64 // bytes of it that hold data
	Errors    []string
}

// WatchStream is a set of watches that share one channel of answers. A
// watcher that falls behind is caught up from the database; it never holds up
// writers or other streams.
type WatchStream interface {
	// Watch adds a watch on [key, end), with etcd's conventions for end. An
	// id of 0 asks the stream to choose one (etcd's AutoWatchID); one in use
	// is ErrWatcherDuplicateID. startRevision 0 means from now.
	// A start below the compaction floor is reported on the channel with
	// CompactRevision set, after which the watch is gone.
	Watch(w WatchRequest) (id int64, err error)
	// Cancel removes a watch; no answer of it is sent afterwards.
	Cancel(id int64) error
	// Chan carries the answers. It is closed by Close.
	Chan() <-chan WatchResponse
	// RequestProgress asks for an answer without events that carries the
	// revision up to which the watch has been told everything. It comes on
	// the channel in its place among the watch's events.
	RequestProgress(id int64)
	// RequestProgressAll asks the same of every watch of the stream; each
	// is answered with its own frontier once it is synced.
	RequestProgressAll()
	// Revision is the newest acknowledged revision.
	Revision() int64
	Close()
}

// WatchRequest describes one watch.
type WatchRequest struct {
	ID            int64
	Key, End      []byte
	StartRevision int64
	PrevKV        bool
	NoPut         bool
	NoDelete      bool
}

// WatchResponse is what a watch has to tell.
type WatchResponse struct {
	WatchID int64
	// Events are all events of one or more whole revisions, in order. It is
	// empty in a progress answer.
	Events []*mvccpb.Event
	// Revision is the one up to which the watch has now been told everything.
	Revision int64
	// CompactRevision is not 0 when the watch's start was compacted.
	CompactRevision int64
}
