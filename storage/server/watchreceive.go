package server

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// watchReceiver carries out what a client asks on a watch stream.
//
// The client's ids and the store's are kept apart: a client may use an id
// again after it cancelled the watch, and answers of the old one that are
// still on their way must not reach the new one. So every watch gets a number
// of its own that is never used twice.
type watchReceiver struct {
	stream   pb.Watch_WatchServer
	headers  headers
	commands chan watchCommand
	dropped  chan endedWatch

	byClient map[int64]int64 // the store's ids
	lastID   int64
	nextAuto int64

	mu      sync.Mutex
	watches WatchStream
	closed  bool
}

// endedWatch is a watch that the store ended.
type endedWatch struct{ clientID, id int64 }

// run handles requests until the client closes its side (nil) or the stream
// fails.
func (r *watchReceiver) run(ctx context.Context) error {
	for {
		request, err := r.stream.Recv()
		if isEndOfStream(err) {
			return nil
		}
		if err != nil {
			return err
		}
		r.forgetDropped()
		var command watchCommand
		switch union := request.GetRequestUnion().(type) {
		case *pb.WatchRequest_CreateRequest:
			if union.CreateRequest == nil {
				continue
			}
			command = r.create(union.CreateRequest)
		case *pb.WatchRequest_CancelRequest:
			var known bool
			if command, known = r.cancel(union.CancelRequest.GetWatchId()); !known {
				continue
			}
		case *pb.WatchRequest_ProgressRequest:
			r.withStream(func(watches WatchStream) { watches.RequestProgressAll() })
			continue
		default:
			continue // etcd ignores what it does not know
		}
		select {
		case r.commands <- command:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *watchReceiver) create(request *pb.WatchCreateRequest) watchCommand {
	clientID := request.WatchId
	storeRequest, err := createRequest(request)
	if err == nil {
		if clientID == 0 { // etcd's AutoWatchID
			for r.inUse(r.nextAuto) {
				r.nextAuto++
			}
			clientID = r.nextAuto
			r.nextAuto++
		} else if r.inUse(clientID) {
			err = errDuplicateWatchID
		}
	}
	command := watchCommand{created: true, watch: watchState{
		clientID: clientID,
		progress: request.ProgressNotify,
		fragment: request.Fragment,
	}}
	revision := int64(0)
	r.withStream(func(watches WatchStream) {
		if err == nil {
			storeRequest.ID = r.lastID + 1
			command.id, err = watches.Watch(storeRequest)
		}
		revision = watches.Revision()
	})
	command.response = &pb.WatchResponse{
		Header:  r.headers.at(revision),
		WatchId: clientID,
		Created: true,
	}
	if err != nil {
		command.id = 0
		command.response.WatchId = invalidWatchID
		command.response.Canceled = true
		command.response.CancelReason = err.Error()
		return command
	}
	r.lastID = command.id
	r.byClient[clientID] = command.id
	return command
}

func (r *watchReceiver) cancel(clientID int64) (command watchCommand, known bool) {
	id, known := r.byClient[clientID]
	if !known {
		return command, false
	}
	delete(r.byClient, clientID)
	r.withStream(func(watches WatchStream) {
		// An error only says that the store ended the watch meanwhile.
		_ = watches.Cancel(id)
		command = watchCommand{id: id, cancel: true, response: &pb.WatchResponse{
			Header:   r.headers.at(watches.Revision()),
			WatchId:  clientID,
			Canceled: true,
		}}
	})
	return command, command.cancel
}

func (r *watchReceiver) inUse(clientID int64) bool {
	_, used := r.byClient[clientID]
	return used
}

// forgetDropped frees the ids of watches that the store ended.
func (r *watchReceiver) forgetDropped() {
	for {
		select {
		case watch := <-r.dropped:
			if r.byClient[watch.clientID] == watch.id {
				delete(r.byClient, watch.clientID)
			}
		default:
			return
		}
	}
}

// withStream calls f unless the store's stream was closed.
func (r *watchReceiver) withStream(f func(WatchStream)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		f(r.watches)
	}
}

func (r *watchReceiver) closeStream() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.watches.Close()
}
