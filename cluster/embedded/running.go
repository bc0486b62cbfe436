package embedded

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// running tells when the Run methods of all controllers were entered.
type running struct {
	all chan struct{}
}

// watched wraps the controllers so that running is told.
func watched(controllers []app.Controller) ([]app.Controller, *running) {
	r := &running{all: make(chan struct{})}
	var started sync.WaitGroup
	started.Add(len(controllers))
	wrapped := make([]app.Controller, 0, len(controllers))
	for _, controller := range controllers {
		wrapped = append(wrapped, &watchedController{Controller: controller, started: started.Done})
	}
	go func() {
		started.Wait()
		close(r.all)
	}()
	return wrapped, r
}

// wait returns false when ctx ended before all ran.
func (r *running) wait(ctx context.Context) bool {
	select {
	case <-r.all:
		return true
	case <-ctx.Done():
		return false
	}
}

type watchedController struct {
	app.Controller
	started func()
}

func (c *watchedController) Run(ctx context.Context) {
	c.started()
	c.Controller.Run(ctx)
}

// noHealthChecks takes the health checks of a controller manager that serves
// none.
type noHealthChecks struct{}

func (noHealthChecks) AddHealthChecker(...healthz.HealthChecker) {}
