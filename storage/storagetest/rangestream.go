package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// rangeStream puts the parts of a streamed range together. How it is cut may
// differ; header, more and count may stand in the last part only.
func (s *side) rangeStream(ctx context.Context, r *pb.RangeRequest) (proto.Message, error) {
	stream, err := s.kv.RangeStream(ctx, r)
	if err != nil {
		return nil, err
	}
	whole := &pb.RangeResponse{}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return nil, err
		}
		if whole.Header != nil {
			return nil, fmt.Errorf("a part follows the one with the header: %v", part)
		}
		p := part.RangeResponse
		whole.Kvs = append(whole.Kvs, p.Kvs...)
		whole.Header, whole.More, whole.Count = p.Header, p.More, p.Count
	}
}
