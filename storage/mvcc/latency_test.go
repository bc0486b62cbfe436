package mvcc_test

import (
	"testing"

	"github.com/taskctl-dev/taskctl/storage/server"
)

// BenchmarkPutToEvent is one client that puts and waits for the event.
func BenchmarkPutToEvent(b *testing.B) {
	store := newFile(b)
	fill(b, store, benchKeys)
	ws := store.NewWatchStream()
	defer ws.Close()
	if _, err := ws.Watch(server.WatchRequest{ID: 1, Key: []byte("/registry/things/"), End: []byte("/registry/things0"), PrevKV: true}); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		put(b, store, string(benchKey(i*7%benchKeys)), string(benchValue))
		<-ws.Chan()
	}
}
