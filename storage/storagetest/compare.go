package storagetest

import (
	"fmt"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// answer is what one side said to a request.
type answer struct {
	message proto.Message
	err     error
}

// difference says in what two answers differ, or "". Errors are compared by
// code and text, messages field by field except for what names the cluster.
func difference(left, right answer) string {
	l, r := left.String(), right.String()
	if l == r {
		return ""
	}
	return fmt.Sprintf("left:  %s\nright: %s", l, r)
}

func (a answer) String() string {
	if a.err != nil {
		s := status.Convert(a.err)
		return fmt.Sprintf("error %s: %s", s.Code(), s.Message())
	}
	message := proto.Clone(a.message)
	clearCluster(message.ProtoReflect())
	return describe(message)
}

// describe renders a message the same way every time (prototext varies its
// spaces on purpose).
func describe(message proto.Message) string {
	text, err := prototext.MarshalOptions{Multiline: false}.Marshal(message)
	if err != nil {
		return fmt.Sprintf("unprintable %T: %v", message, err)
	}
	out := make([]byte, 0, len(text))
	for _, c := range text {
		if c == ' ' && len(out) > 0 && out[len(out)-1] == ' ' {
			continue
		}
		out = append(out, c)
	}
	return fmt.Sprintf("%s{%s}", message.ProtoReflect().Descriptor().Name(), out)
}

// clearCluster zeroes cluster_id, member_id and raft_term of all headers.
func clearCluster(message protoreflect.Message) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
			switch field.Name() {
			case "cluster_id", "member_id", "raft_term":
				message.Clear(field)
			}
		case field.IsList():
			for i := range value.List().Len() {
				clearCluster(value.List().Get(i).Message())
			}
		default:
			clearCluster(value.Message())
		}
		return true
	})
}
