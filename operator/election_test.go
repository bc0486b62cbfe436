package operator_test

import (
	"errors"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/taskctl-dev/taskctl/operator"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// takesTurns runs two replicas that elect a leader, as in a real cluster: one
// works, both are ready, and the other one takes over.
func takesTurns(t *testing.T, e *environment) {
	var sent [2]*traffic
	var stop [2]func()
	for i := range sent {
		sent[i] = &traffic{}
		stop[i] = e.run(t, nil, func(o *operator.Options) {
			// The Role for the Lease is only in the manifests of a deployment.
			o.Config = rest.CopyConfig(e.admin)
			o.Config.Wrap(sent[i].wrap)
			o.LeaderElection = &operator.LeaderElection{Namespace: "taskctl-system", Name: "test"}
		})
	}
	namespace := e.namespace(t)
	e.settled(t, e.create(t, namespace, nil))
	writes := func(i int) int64 { return sent[i].taskWrites.Load() }
	leader := 0
	if writes(1) > 0 {
		leader = 1
	}
	if writes(leader) != 3 || writes(1-leader) != 0 {
		t.Errorf("the replicas wrote %d and %d times", writes(0), writes(1))
	}

	stop[leader]()
	task := e.create(t, namespace, nil)
	eventually(t, "the other replica takes over", func() error {
		if e.get(t, task); task.Status.ObservedGeneration == 0 {
			return errors.New("the Task is not observed")
		}
		return nil
	})
	if writes(1-leader) != 3 {
		t.Errorf("the second leader wrote %d times", writes(1-leader))
	}
	e.expectReasons(t, task, taskv1.ReasonTaskCreated)
}
