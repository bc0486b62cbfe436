package mvcc

import (
	"sync/atomic"
	"unsafe"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// item is one live version of a key: what the index holds of it. It never
// changes once it is published, except that its value comes and goes with the
// value cache. It fills 64 bytes, which a million keys feel.
type item struct {
	key     string
	id      int64 // row in the backend
	mod     int64
	create  int64
	version int64
	lease   int64
	value   atomic.Pointer[cached]
}

// cached is an item's answer, shared by everybody who asks for it.
type cached struct {
	kv   mvccpb.KeyValue
	used atomic.Bool // since the value cache looked last
}

// newCached makes an item's answer.
func newCached(i *item, value []byte) *cached {
	c := &cached{}
	c.kv.Key = bytesOf(i.key)
	c.kv.CreateRevision = i.create
	c.kv.ModRevision = i.mod
	c.kv.Version = i.version
	c.kv.Lease = i.lease
	c.kv.Value = value
	return c
}

// header is the item's answer without a value and, as etcd's answers to
// keys-only requests, without the lease.
func (i *item) header() *mvccpb.KeyValue {
	return &mvccpb.KeyValue{
		Key:            bytesOf(i.key),
		CreateRevision: i.create,
		ModRevision:    i.mod,
		Version:        i.version,
	}
}

// bytesOf is a key's bytes without a copy; nobody may change them.
func bytesOf(key string) []byte {
	return unsafe.Slice(unsafe.StringData(key), len(key))
}

// stringOf looks at bytes as a string for the time of a comparison.
func stringOf(key []byte) string {
	return unsafe.String(unsafe.SliceData(key), len(key))
}
