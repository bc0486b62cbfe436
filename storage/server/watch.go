package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// invalidWatchID stands in answers about a watch that was not made.
const invalidWatchID = -1

// Reasons why a watch is not made, with etcd's texts (server/storage/mvcc).
var (
	errDuplicateWatchID = errors.New("mvcc: duplicate watch ID provided on the WatchStream")
	errEmptyWatchRange  = errors.New("mvcc: watcher range is empty")
)

// watchService answers etcdserverpb.Watch.
type watchService struct {
	pb.UnsafeWatchServer
	store    Store
	headers  headers
	options  Options
	stopping <-chan struct{}
	logger   *slog.Logger
}

// Watch serves one stream: this goroutine sends, a second one receives. The
// receiver ends when the stream does, which is right after Watch returned.
func (s *watchService) Watch(stream pb.Watch_WatchServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	watches := s.store.NewWatchStream()
	receiver := &watchReceiver{
		stream:   stream,
		watches:  watches,
		headers:  s.headers,
		commands: make(chan watchCommand, 16),
		byClient: make(map[int64]int64),
		dropped:  make(chan endedWatch, 64),
	}
	received := make(chan error, 1)
	go func() {
		received <- receiver.run(ctx)
		close(receiver.commands)
	}()
	sender := newWatchSender(s, stream, watches, receiver)
	err := sender.run(ctx, s.stopping)
	// A receiver that is in the middle of a command must not find the store's
	// stream closed, one that waits for the client ends with this call.
	cancel()
	receiver.closeStream()
	if err == nil { // the sender saw the receiver end
		err = <-received
	}
	if err != nil && !isClientGone(stream.Context().Err(), err) {
		s.logger.Warn("watch stream failed", "error", err)
	}
	if errors.Is(err, context.Canceled) {
		return rpctypes.ErrGRPCWatchCanceled
	}
	return err
}

// watchCommand is what the receiver tells the sender, in the client's order.
type watchCommand struct {
	response *pb.WatchResponse
	id       int64 // the store's
	created  bool
	cancel   bool
	watch    watchState
}

// createRequest turns a client's request into the store's form; err says why
// the watch can't be made.
func createRequest(r *pb.WatchCreateRequest) (WatchRequest, error) {
	request := WatchRequest{
		Key:           r.Key,
		End:           r.RangeEnd,
		StartRevision: r.StartRevision,
		PrevKV:        r.PrevKv,
	}
	if r.StartRevision < 0 {
		return request, rpctypes.ErrCompacted
	}
	if len(request.Key) == 0 {
		request.Key = []byte{0} // the smallest key
	}
	fromKey := len(request.End) == 1 && request.End[0] == 0
	if len(request.End) != 0 && !fromKey && bytes.Compare(request.Key, request.End) >= 0 {
		return request, errEmptyWatchRange
	}
	for _, filter := range r.Filters {
		switch filter {
		case pb.WatchCreateRequest_NOPUT:
			request.NoPut = true
		case pb.WatchCreateRequest_NODELETE:
			request.NoDelete = true
		}
	}
	return request, nil
}

// isEndOfStream says whether the client closed its side in good order.
func isEndOfStream(err error) bool { return errors.Is(err, io.EOF) }
