package server

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// watchState is what the sender knows of one watch.
type watchState struct {
	clientID int64
	progress bool // asked to be told its progress from time to time
	fragment bool // accepts an answer in several parts
	quiet    bool // was sent no event since the last tick
}

// watchSender sends everything that goes out on a watch stream, so that the
// order holds that clients rely on: "created" before anything else of a watch,
// nothing after "canceled", and nothing between the parts of a fragmented
// answer.
type watchSender struct {
	stream   pb.Watch_WatchServer
	watches  WatchStream
	receiver *watchReceiver
	headers  headers
	interval time.Duration
	maxBytes int

	active  map[int64]*watchState     // by the store's id
	early   map[int64][]WatchResponse // answers of watches not announced yet
	highest int64                     // the newest id that was announced
}

func newWatchSender(s *watchService, stream pb.Watch_WatchServer, watches WatchStream, receiver *watchReceiver) *watchSender {
	return &watchSender{
		stream:   stream,
		watches:  watches,
		receiver: receiver,
		headers:  s.headers,
		interval: s.options.progressInterval(),
		maxBytes: s.options.maxMessageBytes(),
		active:   make(map[int64]*watchState),
		early:    make(map[int64][]WatchResponse),
	}
}

// run sends until the stream or the server ends. It returns nil when the
// receiver has ended first; its error is the one to report then.
func (s *watchSender) run(ctx context.Context, stopping <-chan struct{}) error {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		var err error
		select {
		case response, open := <-s.watches.Chan():
			if !open { // the store was closed below us
				return rpctypes.ErrGRPCStopped
			}
			err = s.answer(response)
		case command, open := <-s.receiver.commands:
			if !open {
				return nil
			}
			err = s.command(command)
		case <-ticker.C:
			s.tick()
		case <-stopping:
			return rpctypes.ErrGRPCStopped
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// command announces that a watch was made or cancelled.
func (s *watchSender) command(command watchCommand) error {
	if command.cancel {
		if _, known := s.active[command.id]; !known {
			return nil // its end was already said
		}
		delete(s.active, command.id)
	}
	if err := s.stream.Send(command.response); err != nil {
		return err
	}
	if !command.created || command.id == 0 {
		return nil
	}
	state := command.watch
	s.active[command.id] = &state
	s.highest = command.id
	early := s.early[command.id]
	delete(s.early, command.id)
	for _, response := range early {
		if err := s.answer(response); err != nil {
			return err
		}
	}
	return nil
}

// answer sends what the store has to tell of one watch.
func (s *watchSender) answer(response WatchResponse) error {
	state, known := s.active[response.WatchID]
	if !known {
		if response.WatchID > s.highest {
			s.early[response.WatchID] = append(s.early[response.WatchID], response)
		}
		return nil // the client cancelled it meanwhile
	}
	out := &pb.WatchResponse{
		Header:          s.headers.at(response.Revision),
		WatchId:         state.clientID,
		Events:          response.Events,
		CompactRevision: response.CompactRevision,
		Canceled:        response.CompactRevision != 0,
	}
	if len(response.Events) > 0 {
		state.quiet = false
	}
	if out.Canceled {
		delete(s.active, response.WatchID)
		select {
		case s.receiver.dropped <- endedWatch{state.clientID, response.WatchID}:
		default: // the id stays taken, as every compacted one does in etcd
		}
	}
	if state.fragment {
		return sendFragments(out, s.maxBytes, s.stream.Send)
	}
	return s.stream.Send(out)
}

// tick asks for the progress of every watch that wants it and has been sent
// no event since the last tick.
func (s *watchSender) tick() {
	for id, state := range s.active {
		if !state.progress {
			continue
		}
		if state.quiet {
			s.watches.RequestProgress(id)
		}
		state.quiet = true
	}
}
