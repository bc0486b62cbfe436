package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

const (
	prefix    = "/registry/bench/"
	valueSize = 1024
	pageSize  = 500
)

// workloads in the order in which they run; "list" counts objects.
var workloadNames = []string{"create", "update", "get", "list", "count", "delete", "put to event p50 (µs)", "put to event p99 (µs)"}

// costSuffix marks the processor time that the server spent on one operation,
// in microseconds: it tells servers apart on a machine that is busy with other
// things, too. That of a database's server is not in it.
const costSuffix = " cpu"

// figures are a contender's results in one round.
type figures map[string]float64

func (f figures) line(name string) string {
	line := name + ":"
	for _, workload := range workloadNames {
		line += fmt.Sprintf(" %s %.0f", workload, f[workload])
	}
	return line
}

// bench drives one server.
type bench struct {
	settings
	clients   []*clientv3.Client
	revisions []atomic.Int64 // of each key
	random    []*rand.Rand   // of each client
}

// measure starts a contender on an empty store and runs every workload.
func measure(ctx context.Context, s settings, c contender) (figures, error) {
	server, err := start(ctx, c)
	if err != nil {
		return nil, err
	}
	results, err := measureServer(ctx, s, server)
	if stopErr := server.stop(); err == nil {
		err = stopErr
	}
	return results, err
}

// newBench connects the clients; done closes them.
func newBench(s settings, server *server) (b *bench, done func(), err error) {
	b = &bench{settings: s, revisions: make([]atomic.Int64, s.keys)}
	done = func() {
		for _, client := range b.clients {
			_ = client.Close()
		}
	}
	for i := range s.clients {
		client, err := server.connect()
		if err != nil {
			done()
			return nil, nil, err
		}
		b.clients = append(b.clients, client)
		b.random = append(b.random, rand.New(rand.NewPCG(s.seed, uint64(i))))
	}
	return b, done, nil
}

func measureServer(ctx context.Context, s settings, server *server) (figures, error) {
	b, done, err := newBench(s, server)
	if err != nil {
		return nil, err
	}
	defer done()
	results := figures{}
	for _, step := range []struct {
		name string
		run  func(context.Context) (float64, error)
	}{
		{"create", b.eachKey(b.create)},
		{"update", b.forDuration(b.update)},
		{"get", b.forDuration(b.get)},
		{"list", b.forDuration(b.list)},
		{"count", b.forDuration(b.count)},
		{"delete", b.eachKey(b.remove)},
	} {
		before, begin := processorTime(server.cmd.Process.Pid), time.Now()
		rate, err := step.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		done := rate * time.Since(begin).Seconds()
		results[step.name] = rate
		results[step.name+costSuffix] = float64((processorTime(server.cmd.Process.Pid) - before).Microseconds()) / done
	}
	p50, p99, err := b.watchLatency(ctx)
	if errors.Is(err, errNoEvent) {
		p50, p99 = math.NaN(), math.NaN() // a result, not a reason to stop
	} else if err != nil {
		return nil, err
	}
	results["put to event p50 (µs)"], results["put to event p99 (µs)"] = p50, p99
	return results, nil
}

// eachKey runs an operation once for every key, and returns keys per second.
func (b *bench) eachKey(op func(ctx context.Context, client, key int) (int, error)) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		var next atomic.Int64
		return b.parallel(ctx, func(ctx context.Context, client int) (int, bool, error) {
			key := int(next.Add(1)) - 1
			if key >= b.keys {
				return 0, false, nil
			}
			n, err := op(ctx, client, key)
			return n, true, err
		})
	}
}

// forDuration runs an operation on random keys for a while. A client's keys
// are its own, so that updates never conflict.
func (b *bench) forDuration(op func(ctx context.Context, client, key int) (int, error)) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		end := time.Now().Add(b.duration)
		own := b.keys / len(b.clients)
		return b.parallel(ctx, func(ctx context.Context, client int) (int, bool, error) {
			if time.Now().After(end) {
				return 0, false, nil
			}
			n, err := op(ctx, client, client*own+b.random[client].IntN(own))
			return n, true, err
		})
	}
}

// parallel has every client call step until it says no, and returns the sum
// of what the steps did, per second.
func (b *bench) parallel(ctx context.Context, step func(ctx context.Context, client int) (n int, more bool, err error)) (float64, error) {
	var total atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now()
	for client := range b.clients {
		group.Go(func() error {
			for {
				n, more, err := step(ctx, client)
				if err != nil || !more {
					return err
				}
				total.Add(int64(n))
			}
		})
	}
	err := group.Wait()
	return float64(total.Load()) / time.Since(begin).Seconds(), err
}

// watchLatency puts one key after the other and takes the time until a watch
// on another connection has its event, in microseconds.
func (b *bench) watchLatency(ctx context.Context) (p50, p99 float64, err error) {
	const samples = 500
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	events := b.clients[0].Watch(ctx, prefix+"watched/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-events // created
	seen := make(chan time.Time, 1)
	wait.Go(func() {
		for response := range events {
			now := time.Now()
			for range response.Events {
				select {
				case seen <- now:
				case <-ctx.Done():
				}
			}
		}
	})
	var took []float64
	for i := range samples {
		begin := time.Now()
		if _, err := create(ctx, b.clients[1], fmt.Sprintf("%swatched/%05d", prefix, i), value()); err != nil {
			return 0, 0, err
		}
		select {
		case at := <-seen:
			took = append(took, float64(at.Sub(begin).Microseconds()))
		case <-time.After(10 * time.Second):
			return 0, 0, errNoEvent
		}
	}
	return quantile(took, 0.5), quantile(took, 0.99), nil
}
