package server

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// sendFragments sends a response in parts of less than maxBytes each, of whole
// events, the last one without the fragment mark. A response of a single event
// is never cut (etcd's sendFragments).
func sendFragments(response *pb.WatchResponse, maxBytes int, send func(*pb.WatchResponse) error) error {
	if len(response.Events) < 2 || proto.Size(response) < maxBytes {
		return send(response)
	}
	rest := response.Events
	for len(rest) > 0 {
		part := &pb.WatchResponse{
			Header:          response.Header,
			WatchId:         response.WatchId,
			Canceled:        response.Canceled,
			CompactRevision: response.CompactRevision,
			Fragment:        true,
		}
		size, count := proto.Size(part), 0
		for count < len(rest) {
			size += proto.Size(&pb.WatchResponse{Events: rest[count : count+1]})
			if count > 0 && size >= maxBytes {
				break
			}
			count++
		}
		part.Events, rest = rest[:count], rest[count:]
		part.Fragment = len(rest) > 0
		if err := send(part); err != nil {
			return err
		}
	}
	return nil
}
