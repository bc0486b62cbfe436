package robustness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/tests/v3/robustness/client"
	"go.etcd.io/etcd/tests/v3/robustness/identity"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

// simulate runs etcd's traffic and a watch over everything while disturb does
// its work, and returns what all clients saw (etcd's runScenario and
// SimulateTraffic, which only take clusters of etcd's own test framework).
func simulate(ctx context.Context, lg *zap.Logger, endpoint string, kind traffic.Traffic, profile traffic.Profile, disturb func(context.Context) error) ([]report.ClientReport, error) {
	ids, base := identity.NewIDProvider(), time.Now()
	writers, watchers := client.NewSet(ids, base), client.NewSet(ids, base)
	defer writers.Close()
	defer watchers.Close()
	maxRevision := make(chan int64, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(maxRevision)
		reports, err := write(ctx, lg, endpoint, kind, profile, writers, disturb)
		if err == nil {
			maxRevision <- report.OperationsMaxRevision(reports)
		}
		return err
	})
	group.Go(func() error {
		return client.CollectClusterWatchEvents(ctx, client.CollectClusterWatchEventsParam{
			Lg: lg, Endpoints: []string{endpoint}, MaxRevisionChan: maxRevision, ClientSet: watchers,
		})
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(writers.Reports(), watchers.Reports()), nil
}

// write runs the traffic's clients until disturb is done.
func write(ctx context.Context, lg *zap.Logger, endpoint string, kind traffic.Traffic, profile traffic.Profile, set *client.ClientSet, disturb func(context.Context) error) ([]report.ClientReport, error) {
	endpoints := []string{endpoint}
	if err := traffic.CheckEmptyDatabaseAtStart(ctx, lg, endpoints, set); err != nil {
		return nil, err
	}
	var clients sync.WaitGroup
	finish := make(chan struct{})
	limiter := rate.NewLimiter(rate.Limit(profile.KeyValue.MaximalQPS), profile.KeyValue.BurstableQPS)
	keys, objects := traffic.NewKeyStore(10, "key"), traffic.NewKubernetesStorage()
	err := traffic.SimulateKeyValueTraffic(ctx, &clients, profile.KeyValue, endpoints, set, kind, traffic.RunTrafficLoopParam{
		QPSLimiter:                         limiter,
		IDs:                                set.IdentityProvider(),
		LeaseIDStorage:                     identity.NewLeaseIDStorage(),
		NonUniqueRequestConcurrencyLimiter: traffic.NewConcurrencyLimiter(profile.KeyValue.MaxNonUniqueRequestConcurrency),
		KeyStore:                           keys,
		Storage:                            objects,
		Finish:                             finish,
	})
	if err != nil {
		return nil, err
	}
	err = traffic.SimulateWatchTraffic(ctx, &clients, profile.Watch, endpoints, set, kind, traffic.RunWatchLoopParam{
		Config: *profile.Watch, QPSLimiter: limiter, KeyStore: keys, Storage: objects, Finish: finish, Logger: lg,
	})
	if err != nil {
		return nil, err
	}
	err = traffic.SimulateCompactionTraffic(ctx, &clients, profile.Compaction, endpoints, set, kind, traffic.RunCompactLoopParam{
		Period: profile.Compaction.Period, Finish: finish,
	})
	if err != nil {
		return nil, err
	}
	disturbed := disturb(ctx)
	close(finish)
	clients.Wait()
	if disturbed != nil {
		return nil, disturbed
	}
	// The validators need the last operation to succeed.
	last, err := set.NewClient(endpoints)
	if err != nil {
		return nil, err
	}
	defer func() { _ = last.Close() }()
	if _, err := last.Put(ctx, "tombstone", "true"); err != nil {
		return nil, fmt.Errorf("the last write: %w", err)
	}
	return set.Reports(), nil
}

// awaitWrites waits until the store is so many revisions further.
func awaitWrites(ctx context.Context, endpoint string, count int64) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	first := int64(0)
	for {
		status, err := client.Status(ctx, endpoint)
		switch {
		case err == nil && first == 0:
			first = status.Header.Revision
		case err == nil && status.Header.Revision >= first+count:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the traffic made no %d writes: %w (%v)", count, ctx.Err(), err)
		}
	}
}

// checkTraffic fails when too little happened for a result to mean anything.
func checkTraffic(t *testing.T, reports []report.ClientReport, took time.Duration) {
	t.Helper()
	stats := traffic.CalculateStats(reports, 0, took)
	watches := traffic.CalculateWatchStats(reports, 0, took)
	t.Logf("%d requests succeeded and %d failed in %s, %d watches saw %d events",
		stats.Successes, stats.Failures, took.Round(time.Millisecond), watches.Requests, watches.Events)
	if stats.Successes < 200 || watches.Events < 200 {
		t.Errorf("%d successes and %d events are too few to judge by", stats.Successes, watches.Events)
	}
}
