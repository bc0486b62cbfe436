package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// beforeCompaction is how long writes are measured without one.
const beforeCompaction = 15 * time.Second

// measureCompaction makes revisions, and prints the latencies of writes before
// and while all of them are compacted.
func measureCompaction(ctx context.Context, s settings, contenders []contender) error {
	fmt.Printf("| writes while %d revisions are compacted | p50 before (ms) | p99 before | p50 during | p99 during | p99 ratio | compaction (s) |\n|---|---|---|---|---|---|---|\n", s.compaction)
	for _, c := range contenders {
		server, err := start(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		line, err := compactionOf(ctx, s, server)
		if err := errors.Join(err, server.stop()); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Printf("| %s | %s |\n", c.name, line)
	}
	return nil
}

func compactionOf(ctx context.Context, s settings, server *server) (string, error) {
	b, done, err := newBench(s, server)
	if err != nil {
		return "", err
	}
	defer done()
	if _, err := b.eachKey(b.create)(ctx); err != nil {
		return "", err
	}
	// More clients make larger batches: only the number of revisions counts here.
	var made atomic.Int64
	many := *b
	for range 7 {
		many.clients = append(many.clients, b.clients...)
	}
	_, err = many.parallel(ctx, func(ctx context.Context, client int) (int, bool, error) {
		n := made.Add(1)
		if n > int64(s.compaction) {
			return 0, false, nil
		}
		_, err := many.clients[client].Put(ctx, key(int(n*7919)%s.keys), value())
		return 1, true, err
	})
	if err != nil {
		return "", err
	}
	before, err := b.putsUntil(ctx, time.After(beforeCompaction))
	if err != nil {
		return "", err
	}
	newest, err := b.clients[0].Get(ctx, "/registry/newest")
	if err != nil {
		return "", err
	}
	began, swept := time.Now(), make(chan time.Time, 1)
	var took time.Duration
	var failed error
	var compacting sync.WaitGroup
	compacting.Go(func() {
		_, failed = b.clients[0].Compact(ctx, newest.Header.Revision, clientv3.WithCompactPhysical())
		took = time.Since(began)
		swept <- time.Now()
	})
	during, err := b.putsUntil(ctx, swept)
	compacting.Wait()
	if err := errors.Join(err, failed); err != nil {
		return "", err
	}
	p99 := [2]float64{quantile(before, 0.99), quantile(during, 0.99)}
	return fmt.Sprintf("%.1f | %.1f | %.1f | %.1f | %.2f | %.0f",
		quantile(before, 0.5), p99[0], quantile(during, 0.5), p99[1], p99[1]/p99[0], took.Seconds()), nil
}

// putsUntil has every client put keys of its own until the channel delivers,
// and returns how long each put took, in milliseconds.
func (b *bench) putsUntil(ctx context.Context, end <-chan time.Time) ([]float64, error) {
	var mu sync.Mutex
	var all []float64
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-end:
		case <-ctx.Done():
		}
	}()
	own := b.keys / len(b.clients)
	_, err := b.parallel(ctx, func(ctx context.Context, client int) (int, bool, error) {
		select {
		case <-over:
			return 0, false, nil
		default:
		}
		began := time.Now()
		_, err := b.clients[client].Put(ctx, key(client*own+b.random[client].IntN(own)), value())
		took := float64(time.Since(began).Microseconds()) / 1000
		mu.Lock()
		defer mu.Unlock()
		all = append(all, took)
		return 1, true, err
	})
	return all, err
}
