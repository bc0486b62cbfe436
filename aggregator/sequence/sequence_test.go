package sequence

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	testingclock "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is an API server with one ConfigMap and optimistic locking.
type store struct {
	corev1client.ConfigMapInterface

	mu       sync.Mutex
	version  int
	data     map[string]string
	missing  bool
	failWith error // what the next request is answered with
	updates  int
}

func (s *store) fail() error {
	err := s.failWith
	s.failWith = nil
	return err
}

func (s *store) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail(); err != nil {
		return nil, err
	}
	if s.missing {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(s.version)}, Data: s.data}
	return stored.DeepCopy(), nil
}

func (s *store) Update(_ context.Context, update *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if update.ResourceVersion != strconv.Itoa(s.version) {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, update.Name, errors.New("changed"))
	}
	s.version++
	s.updates++
	s.data = update.DeepCopy().Data
	return update, nil
}

func (s *store) set(next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.data = map[string]string{nextKey: next}
}

func now() time.Time { return time.UnixMicro(1_800_000_000_000_000) }

func open(s *store, block uint64) *Numbers {
	return New(Options{ConfigMaps: s, Name: "seq", Block: block, Clock: testingclock.NewFakeClock(now())})
}

func take(t *testing.T, n *Numbers, count int) []uint64 {
	t.Helper()
	var numbers []uint64
	for range count {
		number, err := n.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, number)
	}
	return numbers
}

func TestNumbersGoOnFromWhatIsStored(t *testing.T) {
	s := &store{data: map[string]string{nextKey: "100"}}
	n := open(s, 3)
	if n.Reserved() {
		t.Error("a block is reserved before anybody asked")
	}
	if err := n.Reserve(t.Context()); err != nil || !n.Reserved() {
		t.Fatalf("got %v", err)
	}
	if got := take(t, n, 4); got[0] != 100 || got[2] != 102 || got[3] != 103 {
		t.Errorf("got %v", got)
	}
	if s.data[nextKey] != "106" || s.updates != 2 {
		t.Errorf("stored %v in %d updates", s.data, s.updates)
	}
}

func TestNumbersNeverRepeatAcrossRestarts(t *testing.T) {
	s := &store{}
	last := uint64(0)
	for restart := range 20 {
		n := open(s, 10)
		// Some use up their block and some hardly begin it.
		for _, number := range take(t, n, 1+restart%13) {
			if number <= last {
				t.Fatalf("restart %d: %d comes after %d", restart, number, last)
			}
			last = number
		}
	}
}

func TestTheFirstNumberIsTheTime(t *testing.T) {
	if got := take(t, open(&store{}, 10), 1)[0]; got != uint64(now().UnixMicro()) {
		t.Errorf("got %d", got)
	}
}

func TestNumbersNeverGoBackWhenTheConfigMapIsSetBack(t *testing.T) {
	s := &store{data: map[string]string{nextKey: "1000"}}
	n := open(s, 2)
	take(t, n, 2)
	s.set("5")
	if got := take(t, n, 1)[0]; got != 1002 {
		t.Errorf("got %d, want 1002", got)
	}
	if s.data[nextKey] != "1004" {
		t.Errorf("stored %v", s.data)
	}
}

func TestProcessesAtTheSameTimeShareNoNumber(t *testing.T) {
	s := &store{}
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var group sync.WaitGroup
	for range 8 {
		n := open(s, 7)
		group.Go(func() {
			last := uint64(0)
			for range 200 {
				number, err := n.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[number] || number <= last {
					t.Errorf("%d after %d was handed out before: %v", number, last, seen[number])
				}
				seen[number] = true
				mu.Unlock()
				last = number
			}
		})
	}
	group.Wait()
}

func TestWhatIsNoNumberIsRefused(t *testing.T) {
	for _, stored := range []string{"", "x", "-1", "9223372036854775807", "99999999999999999999"} {
		s := &store{data: map[string]string{nextKey: stored}}
		err := open(s, 10).Reserve(t.Context())
		if err == nil || !strings.Contains(err.Error(), "seq") || !strings.Contains(err.Error(), strconv.Quote(stored)) {
			t.Errorf("%q: got %v", stored, err)
		}
		if s.data[nextKey] != stored {
			t.Errorf("%q was overwritten with %v", stored, s.data)
		}
	}
}

func TestAMissingConfigMapIsAnError(t *testing.T) {
	err := open(&store{missing: true}, 10).Reserve(t.Context())
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want NotFound", err)
	}
}

func TestNextWaitsWhileTheAPIServerIsOutOfReach(t *testing.T) {
	s := &store{data: map[string]string{nextKey: "1"}, failWith: errors.New("connection refused")}
	clock := testingclock.NewFakeClock(now())
	n := New(Options{ConfigMaps: s, Name: "seq", Clock: &steppingClock{clock}})
	if got := take(t, n, 1)[0]; got != 1 {
		t.Errorf("got %d", got)
	}

	s.missing = true
	n = New(Options{ConfigMaps: s, Name: "seq", Clock: clock})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// steppingClock passes every wait at once.
type steppingClock struct{ *testingclock.FakeClock }

func (c *steppingClock) After(d time.Duration) <-chan time.Time {
	after := c.FakeClock.After(d)
	c.Step(d)
	return after
}
