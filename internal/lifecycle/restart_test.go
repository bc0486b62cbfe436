package lifecycle

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestRestartWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var starts []time.Duration
		d := &diary{}
		g, ready, stop, result := startGroup(t, []Component{
			good(d, "apiserver", 0, 0),
			{Name: "operator", Needs: []string{"apiserver"}, Restart: true, Run: func(ctx context.Context, ready func()) error {
				starts = append(starts, time.Since(began))
				ready()
				if len(starts) == 5 {
					<-ctx.Done()
					return nil
				}
				if len(starts)%2 == 0 {
					panic("again")
				}
				return errors.New("connection refused")
			}},
			good(d, "registration", 0, 0, "operator"),
		}, Options{MinBackoff: time.Second, MaxBackoff: 4 * time.Second})
		<-ready
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 11 * time.Second}
		if len(starts) != len(want) {
			t.Fatalf("starts at %v, want %v", starts, want)
		}
		for i := range want {
			if starts[i] != want[i] {
				t.Fatalf("starts at %v, want %v", starts, want)
			}
		}
		status := g.Snapshot()[1]
		if status.State != Ready || status.Restarts != 4 || status.LastError != "it panicked: again" {
			t.Errorf("status: %+v", status)
		}
		if d.has("stop registration") {
			t.Error("the restart of a need stopped what needs it")
		}
		stop()
		if err := <-result; err != nil {
			t.Errorf("errors that a restart mended are not returned: %v", err)
		}
	})
}

func TestPauseStartsAnewAfterALongReadyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var starts []time.Duration
		_, ready, stop, result := startGroup(t, []Component{{Name: "operator", Restart: true, Run: func(ctx context.Context, ready func()) error {
			starts = append(starts, time.Since(began))
			ready()
			if len(starts) > 3 {
				<-ctx.Done()
				return nil
			}
			time.Sleep(10 * time.Second)
			return errors.New("lost")
		}}}, Options{MinBackoff: time.Second, ResetAfter: 5 * time.Second})
		<-ready
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(starts) != 4 || starts[3] != 33*time.Second {
			t.Errorf("starts at %v, want one second after each end", starts)
		}
		stop()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

func TestStartThatCannotSucceedEndsAtItsLimitWithTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, _, result := startGroup(t, []Component{{
			Name: "webhooks", Restart: true, StartTimeout: 20 * time.Second,
			Run: func(context.Context, func()) error { return errors.New("port 9443 is taken") },
		}}, Options{})
		err := <-result
		if err == nil || err.Error() != "webhooks: not ready within its limit of 20s: port 9443 is taken" {
			t.Errorf("error: %v", err)
		}
	})
}

func TestRestartedComponentThatIsNotReadyInTimeIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		g, ready, stop, result := startGroup(t, []Component{{
			Name: "aggregator", Restart: true, StartTimeout: 10 * time.Second, StopTimeout: time.Second,
			Run: func(ctx context.Context, ready func()) error {
				attempts++
				switch attempts {
				case 1:
					ready()
					return errors.New("lost")
				case 2: // never ready
					<-ctx.Done()
					return nil
				default:
					ready()
					<-ctx.Done()
					return nil
				}
			},
		}}, Options{})
		<-ready
		time.Sleep(time.Minute)
		synctest.Wait()
		if status := g.Snapshot()[0]; status.State != Ready || status.Restarts != 2 ||
			!strings.Contains(status.LastError, "not ready within its limit of 10s") {
			t.Errorf("status: %+v", status)
		}
		stop()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

func TestOneLeftBehindIsNotStartedASecondTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var attempts atomic.Int32
		_, _, _, result := startGroup(t, []Component{{
			Name: "aggregator", Restart: true, StartTimeout: 10 * time.Second, StopTimeout: time.Second,
			Run: func(context.Context, func()) error { attempts.Add(1); <-release; return nil },
		}}, Options{})
		err := <-result
		if err == nil || !strings.Contains(err.Error(), "not stopped within its limit of 1s") || attempts.Load() != 1 {
			t.Errorf("%d attempts, error: %v", attempts.Load(), err)
		}
		close(release)
	})
}

func TestStopDuringAPauseIsImmediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []State
		_, ready, stop, result := startGroup(t, []Component{{
			Name: "operator", Restart: true,
			Run: func(_ context.Context, ready func()) error { ready(); return errors.New("lost") },
		}}, Options{MinBackoff: time.Hour, MaxBackoff: time.Hour, OnChange: func(s Status) { changes = append(changes, s.State) }})
		<-ready
		synctest.Wait()
		began := time.Now()
		stop()
		if err := <-result; err != nil {
			t.Error(err)
		}
		if time.Since(began) != 0 {
			t.Errorf("the stop waited %s", time.Since(began))
		}
		if last := changes[len(changes)-1]; last != Stopped {
			t.Errorf("changes: %v", changes)
		}
	})
}
