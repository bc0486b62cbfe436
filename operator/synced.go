package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// cachedKinds are the kinds that the controllers read from the cache.
func cachedKinds() []client.Object { return []client.Object{&taskv1.Task{}, &corev1.Namespace{}} }

// startInformers makes the cache follow every cached kind from its start on:
// whatever reconciles first finds all of them.
func startInformers(ctx context.Context, informers cache.Cache) error {
	for _, kind := range cachedKinds() {
		if _, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("setting up the cache: %w", err)
		}
	}
	return nil
}

// syncedCache calls ready once the cache has synced. It waits for no leader
// election: a replica that stands by is ready too.
type syncedCache struct {
	cache cache.Cache
	ready func()
	done  chan struct{} // closed when the cache has synced
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*syncedCache) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *syncedCache) Start(ctx context.Context) error {
	for _, kind := range cachedKinds() {
		if _, err := s.cache.GetInformer(ctx, kind); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("waiting for the cache to sync: %w", err)
		}
	}
	close(s.done)
	s.ready()
	return nil
}

// check is the readiness probe.
func (s *syncedCache) check(*http.Request) error {
	select {
	case <-s.done:
		return nil
	default:
		return errors.New("the cache has not synced yet")
	}
}
