package cluster

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
)

// TB is the part of [testing.TB] that StartForTest uses.
type TB interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

const (
	testStartLimit = 2 * time.Minute
	testStopLimit  = 30 * time.Second
)

// StartForTest starts a control plane that lives as long as the test, and
// returns a client configuration of a cluster administrator. It ends the test
// when the start fails. [Start] offers more, and is for TestMain too.
func StartForTest(t TB, options Options) *rest.Config {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testStartLimit)
	defer cancel()
	c, err := Start(ctx, options)
	if err != nil {
		t.Fatalf("start a control plane: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testStopLimit)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return c.RESTConfig()
}
