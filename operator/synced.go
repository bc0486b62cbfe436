package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// syncedTasks calls ready once the cache has every Task. It waits for no leader
// election: a replica that stands by is ready too.
type syncedTasks struct {
	cache cache.Cache
	ready func()
	done  chan struct{} // closed when the cache has synced
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*syncedTasks) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *syncedTasks) Start(ctx context.Context) error {
	if _, err := s.cache.GetInformer(ctx, &taskv1.Task{}); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("waiting for the Task cache: %w", err)
	}
	close(s.done)
	s.ready()
	return nil
}

// check is the readiness probe.
func (s *syncedTasks) check(*http.Request) error {
	select {
	case <-s.done:
		return nil
	default:
		return errors.New("the Task cache has not synced yet")
	}
}
