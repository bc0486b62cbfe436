package aggregator

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// textSerializer is what the codec factory is but for Protobuf, which our types
// have no encoding for. A client that prefers it and takes JSON too, as
// Kubernetes' controllers do, gets JSON; it would get an error otherwise.
type textSerializer struct {
	serializer.CodecFactory
}

var _ runtime.NegotiatedSerializer = textSerializer{}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s textSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.CodecFactory.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}
