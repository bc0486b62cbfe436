package storagetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

const (
	maxWatches = 12
	// watchGroups is over how many gRPC streams a side's watches are spread:
	// etcd's client shares a stream among watches with the same metadata.
	watchGroups = 3
	// catchUpTimeout is how long a watch may take to be told everything.
	catchUpTimeout = 30 * time.Second
)

// watchPair is the same watch on both sides.
type watchPair struct {
	what        string
	start       int64
	empty       bool // its range holds no key
	group       int
	cancel      context.CancelFunc
	left, right *watchRecord
}

// watchRecord is what one watch was told.
type watchRecord struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	events  []string
	told    int64  // everything up to this revision
	end     string // why the watch ended
	ended   bool
}

func newWatchRecord(responses clientv3.WatchChan) *watchRecord {
	r := &watchRecord{changed: make(chan struct{})}
	go func() {
		for response := range responses {
			r.add(response)
		}
		r.update(func() { r.ended = true })
	}()
	return r
}

func (r *watchRecord) update(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *watchRecord) add(response clientv3.WatchResponse) {
	r.update(func() {
		for _, event := range response.Events {
			r.events = append(r.events, describeEvent(event))
			// The header of a watch that is being caught up may be ahead.
			r.told = max(r.told, event.Kv.ModRevision)
		}
		switch {
		case response.Canceled:
			r.end = fmt.Sprintf("compact revision %d, error %v", response.CompactRevision, response.Err())
		case response.IsProgressNotify():
			if response.Header.Revision < r.told {
				r.end = fmt.Sprintf("progress went back from %d to %d", r.told, response.Header.Revision)
			}
			r.told = max(r.told, response.Header.Revision)
		}
	})
}

func describeEvent(event *clientv3.Event) string {
	text := fmt.Sprintf("%s %+q=%+q create %d mod %d version %d lease %d", event.Type, event.Kv.Key, event.Kv.Value,
		event.Kv.CreateRevision, event.Kv.ModRevision, event.Kv.Version, event.Kv.Lease)
	if event.PrevKv != nil {
		text += fmt.Sprintf(" before %+q mod %d version %d lease %d",
			event.PrevKv.Value, event.PrevKv.ModRevision, event.PrevKv.Version, event.PrevKv.Lease)
	}
	return text
}

// state returns the events so far, how the watch ended, and whether it has
// been told everything up to revision or has ended.
func (r *watchRecord) state(revision int64) (text string, settled bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text = strings.Join(r.events, "\n") + "\nend: " + r.end
	return text, r.told >= revision || r.ended || r.end != "", r.changed
}

// openWatch opens a random watch on both sides.
func (d *differential) openWatch() {
	g := d.gen
	if len(d.watches) >= maxWatches {
		d.closeWatch()
	}
	pair := &watchPair{group: g.random.IntN(watchGroups)}
	var options []clientv3.OpOption
	key := string(g.key())
	switch g.random.IntN(5) {
	case 0: // one key
	case 1:
		key = ""
		options = append(options, clientv3.WithPrefix())
	case 2:
		options = append(options, clientv3.WithFromKey())
	case 3:
		options = append(options, clientv3.WithPrefix())
	case 4:
		options = append(options, clientv3.WithRange(string(g.key())))
	}
	if g.chance(60) {
		pair.start = g.someRevision()
	}
	options = append(options, clientv3.WithRev(pair.start))
	for _, option := range []clientv3.OpOption{
		clientv3.WithPrevKV(), clientv3.WithFragment(), clientv3.WithProgressNotify(),
	} {
		if g.chance(40) {
			options = append(options, option)
		}
	}
	switch {
	case g.chance(10):
		options = append(options, clientv3.WithFilterDelete())
	case g.chance(10):
		options = append(options, clientv3.WithFilterPut())
	}
	op := clientv3.OpGet(key, options...)
	pair.what = fmt.Sprintf("watch of %+q to %+q from %d", op.KeyBytes(), op.RangeBytes(), pair.start)
	end := string(op.RangeBytes())
	pair.empty = end != "" && end != "\x00" && key >= end
	d.note(pair.what, nil)
	var ctx context.Context
	ctx, pair.cancel = context.WithCancel(groupContext(pair.group))
	pair.left = newWatchRecord(d.left.client.Watch(ctx, key, options...))
	pair.right = newWatchRecord(d.right.client.Watch(ctx, key, options...))
	d.watches = append(d.watches, pair)
}

// closingStream is what etcd says of a watch with an empty range, and of any
// watch on a stream that is being closed, as at a restart.
const closingStream = "watcher range is empty"

// holdStreams keeps one watch of a key that is never written open on every
// stream, until the function that it returns is called. The client closes a
// stream without watches, and a watch that reaches etcd while its stream is
// being closed is refused with "watcher range is empty", whatever its range is
// (server/storage/mvcc, watchStream.Watch).
func (d *differential) holdStreams() (release func()) {
	ctx, release := context.WithCancel(context.Background())
	for group := range watchGroups {
		for _, s := range []*side{d.left, d.right} {
			newWatchRecord(s.client.Watch(withGroup(ctx, group), "never written"))
		}
	}
	return release
}

func groupContext(group int) context.Context { return withGroup(context.Background(), group) }

func withGroup(ctx context.Context, group int) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "group", strconv.Itoa(group))
}

// closeWatch compares one watch for the last time and cancels it.
func (d *differential) closeWatch() {
	if len(d.watches) == 0 {
		return
	}
	d.compareWatches()
	i := d.gen.random.IntN(len(d.watches))
	d.note("cancel "+d.watches[i].what, nil)
	d.watches[i].cancel()
	d.watches = append(d.watches[:i], d.watches[i+1:]...)
}

func (d *differential) closeWatches() {
	for _, pair := range d.watches {
		pair.cancel()
	}
}

// compareWatches waits until every watch has been told everything and
// compares what it was told.
func (d *differential) compareWatches() {
	d.note("compare watches", nil)
	d.passStarts()
	revision := d.gen.revision
	for _, s := range []*side{d.left, d.right} {
		for _, pair := range d.watches {
			record := pair.left
			if s == d.right {
				record = pair.right
			}
			d.settle(s, pair, record, revision)
		}
	}
	for _, pair := range d.watches {
		left, _, _ := pair.left.state(revision)
		right, _, _ := pair.right.state(revision)
		if !pair.empty && (strings.Contains(left, closingStream) || strings.Contains(right, closingStream)) {
			continue // the watch never began; see holdStreams
		}
		if left != right {
			d.fail("%s was told different things:\n%s:\n%s\n%s:\n%s", pair.what, d.left.target.Name, left, d.right.target.Name, right)
		}
	}
}

// passStarts writes until no watch starts in the future: etcd answers no
// progress request of a stream before.
func (d *differential) passStarts() {
	for _, pair := range d.watches {
		for d.gen.revision < pair.start {
			r := &pb.PutRequest{Key: []byte("pass"), Value: []byte(strconv.Itoa(int(pair.start)))}
			d.both("put", r, func(ctx context.Context, s *side) (proto.Message, error) { return s.kv.Put(ctx, r) })
		}
	}
}

// settle waits until a watch has been told everything up to revision.
func (d *differential) settle(s *side, pair *watchPair, record *watchRecord, revision int64) {
	deadline := time.After(catchUpTimeout)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		text, settled, changed := record.state(revision)
		if settled {
			return
		}
		select {
		case <-changed:
		case <-again.C:
			ctx, cancel := context.WithTimeout(groupContext(pair.group), catchUpTimeout)
			if err := s.client.RequestProgress(ctx); err != nil {
				d.tb.Logf("%s: request progress: %v", s.target.Name, err)
			}
			cancel()
		case <-deadline:
			d.fail("%s on %s was not told everything up to %d; it was told:\n%s", pair.what, s.target.Name, revision, text)
		}
	}
}
