package demo_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/internal/demo"
	"github.com/taskctl-dev/taskctl/test/harness"
)

const limit = time.Minute

func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what needs an appliance")
	}
	appliance := harness.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out bytes.Buffer
	var last atomic.Int64
	result, err := demo.Run(ctx, appliance.REST(), demo.Options{
		Tasks: 30, Namespace: "demo", Out: &out,
		Progress: func(stage demo.Stage, done, total int) {
			if stage == demo.StageObserve && total == 30 {
				last.Store(int64(done))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.Namespace != "demo" || result.Tasks != 30 || result.Created != 30 || result.Changed != 0 || result.Seconds <= 0 {
		t.Errorf("result is %+v", result)
	}
	if last.Load() != 30 {
		t.Errorf("the last progress was %d", last.Load())
	}
	for _, part := range []string{"NAME", "PRIORITY", "EVENTS", "task-sample-1 ", "TaskCreated", "… and 10 more"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in\n%s", part, out.String())
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 22 {
		t.Errorf("there are %d lines", lines)
	}

	t.Run("again it finds everything there", func(t *testing.T) {
		result, err := demo.Run(ctx, appliance.REST(), demo.Options{Tasks: 31, Namespace: "demo"})
		if err != nil {
			t.Fatal(err)
		}
		// Over midnight, the deadlines move.
		if result.Created != 1 || result.Changed != 0 && result.Changed != 30 {
			t.Errorf("result is %+v", result)
		}
	})

	t.Run("a namespace that can't be is an error", func(t *testing.T) {
		if _, err := demo.Run(ctx, appliance.REST(), demo.Options{Namespace: "No Such Name"}); err == nil || !strings.Contains(err.Error(), "namespace") {
			t.Errorf("error is %v", err)
		}
	})
}

func TestRunSaysThatNobodyObserves(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what needs an appliance")
	}
	appliance := harness.Start(t, "--without", "operator,webhooks,aggregator,registration")
	_, err := demo.Run(t.Context(), appliance.REST(), demo.Options{Patience: 2 * time.Second})
	if err == nil {
		t.Fatal("there was no error")
	}
	for _, part := range []string{"10 of 10 Tasks", "none was observed for 2s", "taskctl status"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}
