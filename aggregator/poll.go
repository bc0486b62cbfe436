package aggregator

import (
	"context"
	"time"
)

// pollEvery is the pause between attempts at start.
const pollEvery = 100 * time.Millisecond

// poll tries until attempt succeeds. When ctx ends first the error says why the
// last attempt failed, if that was not ctx's end itself.
func poll(ctx context.Context, attempt func(context.Context) error) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var last error
	for {
		err := attempt(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if last != nil {
				return last
			}
			return ctx.Err()
		}
	}
}
