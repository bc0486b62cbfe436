package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// diary notes what happened, in order.
type diary struct {
	mu      sync.Mutex
	entries []string
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, fmt.Sprintf(format, args...))
}

func (d *diary) index(t *testing.T, entry string) int {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.entries, entry)
	if i < 0 {
		t.Fatalf("%q did not happen; what did: %q", entry, d.entries)
	}
	return i
}

func (d *diary) has(entry string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.entries, entry)
}

// good is a component that is ready after start and stops within stop.
func good(d *diary, name string, start, stop time.Duration, needs ...string) Component {
	return Component{
		Name: name, Needs: needs, StartTimeout: time.Minute, StopTimeout: time.Minute,
		Run: func(ctx context.Context, ready func()) error {
			d.add("start %s", name)
			select {
			case <-time.After(start):
			case <-ctx.Done():
				d.add("cut %s", name)
				return ctx.Err()
			}
			d.add("ready %s", name)
			ready()
			<-ctx.Done()
			time.Sleep(stop) // fake time: the tests run in a synctest bubble
			d.add("stop %s", name)
			return nil
		},
	}
}

// startGroup runs the group in the background.
func startGroup(t *testing.T, components []Component, options Options) (g *Group, ready chan struct{}, stop func(), result chan error) {
	t.Helper()
	g, err := New(components, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, result = make(chan struct{}), make(chan error, 1)
	go func() { result <- g.Run(ctx, func() { close(ready) }) }()
	return g, ready, cancel, result
}

func TestComponentsStartByNeedsAndStopInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		began := time.Now()
		_, ready, stop, result := startGroup(t, []Component{
			good(d, "registration", time.Second, time.Second, "operator", "webhooks"),
			good(d, "operator", 2*time.Second, time.Second, "apiserver"),
			good(d, "webhooks", 2*time.Second, time.Second, "apiserver"),
			good(d, "apiserver", time.Second, time.Second, "storage"),
			good(d, "storage", time.Second, time.Second),
		}, Options{})
		<-ready
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("start took %s; operator and webhooks should start side by side: 1+1+2+1 s", took)
		}
		began = time.Now()
		stop()
		if err := <-result; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("stop took %s; operator and webhooks should stop side by side", took)
		}
		for _, pair := range [][2]string{
			{"ready storage", "start apiserver"}, {"ready apiserver", "start operator"},
			{"ready apiserver", "start webhooks"}, {"ready operator", "start registration"},
			{"ready webhooks", "start registration"}, {"stop registration", "stop operator"},
			{"stop operator", "stop apiserver"}, {"stop webhooks", "stop apiserver"}, {"stop apiserver", "stop storage"},
		} {
			if d.index(t, pair[0]) > d.index(t, pair[1]) {
				t.Errorf("%q came after %q: %q", pair[0], pair[1], d.entries)
			}
		}
	})
}

func TestStartLimitIsNamedWithComponentAndLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		slow := good(d, "apiserver", time.Hour, 0, "storage")
		slow.StartTimeout, slow.LogFile = 30*time.Second, "/data/logs/apiserver.log"
		g, _, _, result := startGroup(t, []Component{good(d, "storage", 0, 0), slow, good(d, "operator", 0, 0, "apiserver")}, Options{})
		err := <-result
		want := "apiserver: not ready within its limit of 30s (log: /data/logs/apiserver.log)"
		if err == nil || err.Error() != want {
			t.Fatalf("error %q, want %q", err, want)
		}
		var blamed *Error
		if !errors.As(err, &blamed) || blamed.Component != "apiserver" {
			t.Errorf("the error does not blame the component: %#v", err)
		}
		if d.has("start operator") {
			t.Error("operator started although its need was never ready")
		}
		if d.index(t, "cut apiserver") > d.index(t, "stop storage") {
			t.Errorf("storage stopped before the API server: %q", d.entries)
		}
		states := map[string]State{}
		for _, status := range g.Snapshot() {
			states[status.Name] = status.State
		}
		if states["storage"] != Stopped || states["apiserver"] != Failed || states["operator"] != Stopped {
			t.Errorf("states after the failed start: %v", states)
		}
	})
}

func TestStopLimitLeavesAHangingComponentBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		d := &diary{}
		hanging := Component{Name: "apiserver", Needs: []string{"storage"}, StopTimeout: 3 * time.Second,
			Run: func(_ context.Context, ready func()) error { ready(); <-release; return nil }}
		_, ready, stop, result := startGroup(t, []Component{good(d, "storage", 0, 0), hanging}, Options{})
		<-ready
		stop()
		err := <-result
		if err == nil || err.Error() != "apiserver: not stopped within its limit of 3s" {
			t.Errorf("error: %v", err)
		}
		d.index(t, "stop storage") // stopped nevertheless
		close(release)
	})
}

func TestPanicBecomesAnErrorAndTheStackGoesToTheLogOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := &diary{}
		_, _, _, result := startGroup(t, []Component{good(d, "storage", 0, 0), {
			Name: "apiserver", Needs: []string{"storage"}, Log: &log,
			Run: func(context.Context, func()) error { panic("nil map") },
		}}, Options{})
		err := <-result
		if err == nil || err.Error() != "apiserver: it panicked: nil map" {
			t.Errorf("error: %v", err)
		}
		if !strings.Contains(log.String(), "panic: nil map") || !strings.Contains(log.String(), "group_test.go") {
			t.Errorf("the log has no stack: %q", log.String())
		}
		d.index(t, "stop storage")
	})
}

func TestGoexitInsideRunIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, _, result := startGroup(t, []Component{{
			Name: "storage", Run: func(context.Context, func()) error { runtime.Goexit(); return nil },
		}}, Options{})
		if err := <-result; err == nil || !strings.Contains(err.Error(), "ended from inside") {
			t.Errorf("error: %v", err)
		}
	})
}

func TestReturnedRunOfOneThatMayNotBeRestartedStopsAllInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		broken := errors.New("disk full")
		_, ready, _, result := startGroup(t, []Component{
			{Name: "storage", Run: func(_ context.Context, ready func()) error {
				ready()
				time.Sleep(time.Minute)
				return broken
			}},
			good(d, "apiserver", time.Second, 0, "storage"),
			good(d, "operator", time.Second, 0, "apiserver"),
		}, Options{})
		<-ready
		if err := <-result; !errors.Is(err, broken) {
			t.Errorf("error: %v", err)
		}
		if d.index(t, "stop operator") > d.index(t, "stop apiserver") {
			t.Errorf("wrong order: %q", d.entries)
		}
	})
}

func TestOneWhoseNeedHasFailedIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		_, _, _, result := startGroup(t, []Component{
			{Name: "storage", Run: func(_ context.Context, ready func()) error {
				ready()
				time.Sleep(time.Minute)
				return errors.New("disk full")
			}},
			{Name: "apiserver", Needs: []string{"storage"}, StopTimeout: time.Minute, Run: func(_ context.Context, ready func()) error {
				ready()
				<-release
				return nil
			}},
		}, Options{OrphanStopTimeout: 2 * time.Second})
		began := time.Now()
		err := <-result
		if took := time.Since(began); took != time.Minute+2*time.Second {
			t.Errorf("it took %s", took)
		}
		if err == nil || err.Error() != "storage: disk full\napiserver: not stopped within its limit of 2s" {
			t.Errorf("error: %v", err)
		}
		close(release)
	})
}

func TestAllErrorsAreJoinedTheCauseFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, _, result := startGroup(t, []Component{
			{Name: "storage", Run: func(ctx context.Context, ready func()) error {
				ready()
				<-ctx.Done()
				return errors.New("close failed")
			}},
			{Name: "apiserver", Needs: []string{"storage"}, Run: func(context.Context, func()) error {
				return errors.New("bind failed")
			}},
		}, Options{})
		err := <-result
		if err == nil || err.Error() != "apiserver: bind failed\nstorage: close failed" {
			t.Errorf("error: %v", err)
		}
	})
}

func TestFailFromOutsideStopsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		g, ready, _, result := startGroup(t, []Component{good(d, "storage", 0, 0), good(d, "apiserver", 0, 0, "storage")}, Options{})
		<-ready
		g.Fail("apiserver", errors.New("fatal exit 255"))
		if err := <-result; err == nil || err.Error() != "apiserver: fatal exit 255" {
			t.Errorf("error: %v", err)
		}
		if d.index(t, "stop apiserver") > d.index(t, "stop storage") {
			t.Errorf("wrong order: %q", d.entries)
		}
	})
}

func TestStopDuringStartCutsItShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		_, _, stop, result := startGroup(t, []Component{good(d, "storage", time.Hour, 0), good(d, "apiserver", 0, 0, "storage")}, Options{})
		synctest.Wait()
		stop()
		if err := <-result; err != nil {
			t.Errorf("a stop that was asked for is no error: %v", err)
		}
		d.index(t, "cut storage")
		if d.has("start apiserver") {
			t.Error("apiserver started after the stop")
		}
	})
}

func TestImpossibleSetsAreRefused(t *testing.T) {
	run := func(context.Context, func()) error { return nil }
	for name, test := range map[string]struct {
		components []Component
		want       string
	}{
		"two with one name": {[]Component{{Name: "a", Run: run}, {Name: "a", Run: run}}, "declared twice"},
		"unknown need":      {[]Component{{Name: "a", Needs: []string{"b"}, Run: run}}, `needs "b", which is not declared`},
		"circle": {[]Component{
			{Name: "a", Needs: []string{"b"}, Run: run}, {Name: "b", Needs: []string{"a"}, Run: run}}, "form a circle"},
		"no Run": {[]Component{{Name: "a"}}, "a Run function"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(test.components, Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}
