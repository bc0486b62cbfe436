package sequence

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
)

const (
	// DefaultBlock is how many numbers are reserved at once. There are 2^63 of
	// them, so a block may be large: it is what one request pays for.
	DefaultBlock = 1 << 16
	// nextKey is the key of the ConfigMap that holds the first number which no
	// process has reserved yet.
	nextKey = "next"
	// retryEvery is the pause between attempts to reserve a block while the
	// API server cannot be reached.
	retryEvery = time.Second
)

// Options configure a sequence.
type Options struct {
	// ConfigMaps is the client of the ConfigMap's namespace. Its rights to get
	// and update this one are enough. Required.
	ConfigMaps corev1client.ConfigMapInterface
	// Name of the ConfigMap, which must exist, empty at first. It is installed
	// with the rights, so that nobody needs to be allowed to create ConfigMaps.
	// Required.
	Name string
	// Block is how many numbers are reserved at once, [DefaultBlock] by
	// default.
	Block uint64
	// Clock is the real one by default.
	Clock clock.Clock
	// Log gets one line for each failed attempt. Default: none.
	Log logr.Logger
}

// Numbers hands out the numbers of reserved blocks. Make one with [New]; it is
// safe for concurrent use.
type Numbers struct {
	options Options

	mu   sync.Mutex
	next uint64 // the number to hand out, when it is below end
	end  uint64 // the first number after the block
}

// New makes a sequence without a block; the first [Numbers.Reserve] or
// [Numbers.Next] reserves one.
func New(options Options) *Numbers {
	if options.Block == 0 {
		options.Block = DefaultBlock
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Numbers{options: options}
}

// Reserve makes one attempt to have a block, unless there is one. The errors
// are those of the API server, and one for a ConfigMap that holds no number.
func (n *Numbers) Reserve(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reserve(ctx)
}

// Reserved tells whether a block was ever reserved, so that the rights and the
// ConfigMap are as they should be.
func (n *Numbers) Reserved() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.end > 0
}

// Next returns the next number. At the end of a block it reserves another one,
// and tries until ctx ends: whoever waits for a number is fed by the same API
// server that is out of reach. The error is ctx's.
func (n *Numbers) Next(ctx context.Context) (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		err := n.reserve(ctx)
		if err == nil {
			number := n.next
			n.next++
			return number, nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		n.options.Log.Error(err, "No resource versions can be reserved, trying again", "in", retryEvery)
		select {
		case <-n.options.Clock.After(retryEvery):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// reserve gets a block if the last one is used up. A lost race against another
// process is tried again at once.
func (n *Numbers) reserve(ctx context.Context) error {
	for n.next >= n.end {
		start, err := n.attempt(ctx)
		switch {
		case err == nil:
			n.next, n.end = start, start+n.options.Block
		case apierrors.IsConflict(err):
		default:
			return fmt.Errorf("reserve resource versions in ConfigMap %s: %w", n.options.Name, err)
		}
	}
	return nil
}

// attempt moves the stored number on by one block.
func (n *Numbers) attempt(ctx context.Context) (start uint64, err error) {
	stored, err := n.options.ConfigMaps.Get(ctx, n.options.Name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	start = n.floor()
	if text, found := stored.Data[nextKey]; found {
		start, err = strconv.ParseUint(text, 10, 64)
		if err != nil || start > math.MaxInt64-n.options.Block {
			return 0, fmt.Errorf("its key %s is %q, no number to go on from; remove that key and the sequence begins anew", nextKey, text)
		}
	}
	start = max(start, n.end) // somebody may have set it back
	updated := stored.DeepCopy()
	if updated.Data == nil {
		updated.Data = map[string]string{}
	}
	updated.Data[nextKey] = strconv.FormatUint(start+n.options.Block, 10)
	// The update carries the resourceVersion that was read, so it fails with a
	// conflict if another process was faster.
	_, err = n.options.ConfigMaps.Update(ctx, updated, metav1.UpdateOptions{})
	return start, err
}

// floor is where a new sequence begins: at the time in microseconds. If the
// ConfigMap's content was lost, the numbers still go on above all that a
// sequence with less than a million changes a second has handed out, so that
// clients of before are told to list again instead of being sent what follows
// in another history.
func (n *Numbers) floor() uint64 {
	return uint64(max(1, n.options.Clock.Now().UnixMicro()))
}
