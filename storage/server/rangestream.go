package server

import (
	"bytes"
	"context"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// firstChunkKeys is how many keys the first part of a streamed range has;
// later parts grow towards the size of the largest request (etcd's numbers).
const firstChunkKeys = 10

// RangeStream answers a range in parts that were all read at one revision.
// Header, more and count stand in the last part only.
func (s *kvService) RangeStream(r *pb.RangeRequest, stream pb.KV_RangeStreamServer) error {
	if err := checkRangeStream(r); err != nil {
		return err
	}
	if r.CountOnly {
		return s.streamCount(r, stream)
	}
	total := r.Limit
	if total == 0 {
		total = math.MaxInt64
	}
	chunk := proto.CloneOf(r)
	chunk.Limit = min(firstChunkKeys, total)
	var header *pb.ResponseHeader
	var sent int64
	for {
		part, err := s.store.Range(stream.Context(), chunk)
		if err != nil {
			return toStatus(err)
		}
		if header == nil {
			header = part.Header
			s.headers.fill(header)
			if chunk.Revision == 0 {
				chunk.Revision = header.Revision
			}
		}
		sent += int64(len(part.Kvs))
		if part.More {
			chunk.Key = append(bytes.Clone(part.Kvs[len(part.Kvs)-1].Key), 0)
		}
		out := &pb.RangeResponse{Kvs: part.Kvs}
		last := !part.More || sent >= total
		if last {
			out.Header, out.More, out.Count = header, part.More, sent
			if part.More {
				rest, err := s.count(stream.Context(), chunk)
				if err != nil {
					return err
				}
				out.Count += rest
			}
		}
		if err := stream.Send(&pb.RangeStreamResponse{RangeResponse: out}); err != nil {
			return err
		}
		if last {
			return nil
		}
		chunk.Limit = min(nextChunkKeys(chunk.Limit, proto.Size(part), s.limits.requestBytes), total-sent)
	}
}

func (s *kvService) streamCount(r *pb.RangeRequest, stream pb.KV_RangeStreamServer) error {
	response, err := s.store.Range(stream.Context(), r)
	if err != nil {
		return toStatus(err)
	}
	s.headers.fill(response.Header)
	return stream.Send(&pb.RangeStreamResponse{
		RangeResponse: &pb.RangeResponse{Header: response.Header, Count: response.Count},
	})
}

// count is how many keys there are from where a stream stopped. That is not
// what the first part counted when the stream was sorted by something else
// than the key without an order, which etcd accepts and sorts part by part.
func (s *kvService) count(ctx context.Context, rest *pb.RangeRequest) (int64, error) {
	response, err := s.store.Range(ctx, &pb.RangeRequest{
		Key: rest.Key, RangeEnd: rest.RangeEnd, Revision: rest.Revision, CountOnly: true,
	})
	if err != nil {
		return 0, toStatus(err)
	}
	return response.Count, nil
}

// nextChunkKeys doubles or halves a part's keys where the last part was less
// than half or more than twice the wanted size.
func nextChunkKeys(keys int64, size, wanted int) int64 {
	switch {
	case size < wanted/2:
		keys *= 2
	case size > wanted*2:
		keys /= 2
	}
	return max(keys, 1)
}
