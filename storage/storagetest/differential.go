package storagetest

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// SeedVariable is the environment variable that repeats a run of
// [Differential] with the seed that a failure printed.
const SeedVariable = "TASKCTL_TEST_SEED"

// Seed is that of the environment, or a new one. It is logged.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(SeedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatalf("%s: %v", SeedVariable, err)
		}
	}
	tb.Logf("repeat with %s=%d", SeedVariable, seed)
	return seed
}

// Differential drives two targets with the same random operations, one after
// the other, and compares every answer, revision and event. It fails at the
// first difference, with the operations before it. Both must be empty.
func Differential(tb testing.TB, seed uint64, operations int, left, right Target) {
	tb.Helper()
	d := &differential{
		tb:    tb,
		left:  startSide(tb, left),
		right: startSide(tb, right),
		gen:   &generator{random: rand.New(rand.NewPCG(seed, 1)), revision: 1},
	}
	defer d.closeWatches()
	defer d.holdStreams()()
	for d.done = 0; d.done < operations && !tb.Failed(); d.done++ {
		d.step()
	}
	if !tb.Failed() {
		d.compareWatches()
		d.compareEverything()
	}
}

// differential is one run.
type differential struct {
	tb          testing.TB
	left, right *side
	gen         *generator
	watches     []*watchPair
	done        int
	log         []string
}

// step does one random operation. The weights make most of them writes and
// reads, and let a store live long enough for history to gather.
func (d *differential) step() {
	g := d.gen
	switch n := g.random.IntN(1000); {
	case n < 250:
		r := g.putRequest()
		d.both("put", r, func(ctx context.Context, s *side) (proto.Message, error) { return s.kv.Put(ctx, r) })
	case n < 350:
		r := g.deleteRequest()
		d.both("delete", r, func(ctx context.Context, s *side) (proto.Message, error) { return s.kv.DeleteRange(ctx, r) })
	case n < 600:
		r := g.txnRequest(0)
		d.both("txn", r, func(ctx context.Context, s *side) (proto.Message, error) { return s.kv.Txn(ctx, r) })
	case n < 800:
		r := g.rangeRequest()
		d.both("range", r, func(ctx context.Context, s *side) (proto.Message, error) { return s.kv.Range(ctx, r) })
	case n < 860:
		r := g.rangeRequest()
		d.both("rangestream", r, func(ctx context.Context, s *side) (proto.Message, error) { return s.rangeStream(ctx, r) })
	case n < 875:
		d.compact()
	case n < 920:
		d.leaseOperation()
	case n < 960:
		d.openWatch()
	case n < 975:
		d.closeWatch()
	case n < 995:
		d.compareWatches()
	case n < 997:
		d.compareEverything()
	default:
		d.restart()
	}
}

func (d *differential) compact() {
	r := &pb.CompactionRequest{Revision: d.gen.someRevision(), Physical: d.gen.chance(50)}
	if d.gen.chance(60) { // keep some history
		r.Revision = max(1, d.gen.revision-20)
	}
	// A watch that is behind may or may not outrun a compaction.
	d.compareWatches()
	a := d.both("compact", r, func(ctx context.Context, s *side) (proto.Message, error) { return s.kv.Compact(ctx, r) })
	if a.err == nil {
		d.gen.floor = r.Revision
	}
}

// both sends a request to both sides and compares the answers.
func (d *differential) both(name string, request proto.Message, send func(context.Context, *side) (proto.Message, error)) answer {
	d.tb.Helper()
	d.note(name, request)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var left, right answer
	left.message, left.err = send(ctx, d.left)
	right.message, right.err = send(ctx, d.right)
	if diff := difference(left, right); diff != "" {
		d.fail("answers differ (left is %s, right is %s):\n%s", d.left.target.Name, d.right.target.Name, diff)
	}
	if left.err == nil {
		if header := headerOf(left.message); header != nil {
			d.gen.revision = max(d.gen.revision, header.Revision)
		}
	}
	return left
}

func headerOf(message proto.Message) *pb.ResponseHeader {
	if headed, ok := message.(interface{ GetHeader() *pb.ResponseHeader }); ok {
		return headed.GetHeader()
	}
	return nil
}

func (d *differential) restart() {
	d.compareWatches()
	for _, s := range []*side{d.left, d.right} {
		if s.target.Restarts {
			d.note("restart "+s.target.Name, nil)
			s.restart(d.tb)
		}
	}
}

// compareEverything lists the whole store at every revision that is kept.
func (d *differential) compareEverything() {
	for revision := max(1, d.gen.floor); revision <= d.gen.revision; revision++ {
		r := &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Revision: revision}
		d.both("range", r, func(ctx context.Context, s *side) (proto.Message, error) { return s.kv.Range(ctx, r) })
	}
	if d.left.target.HashKV && d.right.target.HashKV {
		r := &pb.HashKVRequest{Revision: d.gen.revision}
		d.both("hashkv", r, func(ctx context.Context, s *side) (proto.Message, error) {
			return pb.NewMaintenanceClient(s.client.ActiveConnection()).HashKV(ctx, r)
		})
	}
}

// note keeps the newest operations for a failure's report.
func (d *differential) note(name string, request proto.Message) {
	line := name
	if request != nil {
		line += " " + describe(request)
	}
	if len(line) > 2000 {
		line = line[:2000] + "…"
	}
	if d.log = append(d.log, line); len(d.log) > 200 {
		d.log = d.log[100:]
	}
}

func (d *differential) fail(format string, args ...any) {
	d.tb.Helper()
	for _, line := range d.log[max(0, len(d.log)-40):] {
		d.tb.Log(line)
	}
	d.tb.Fatalf("after %d operations, at revision %d: "+format, append([]any{d.done, d.gen.revision}, args...)...)
}
