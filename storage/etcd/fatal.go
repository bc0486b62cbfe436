package etcd

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"go.uber.org/zap/zapcore"
)

// fatalHook is what etcd's logger does instead of ending the process or
// panicking: it keeps the first such message and ends the goroutine that
// logged it. That goroutine then never acknowledges what it could not do, just
// as if the process had ended.
type fatalHook struct {
	fired chan struct{}

	once  sync.Once
	cause error
}

func newFatalHook() *fatalHook {
	return &fatalHook{fired: make(chan struct{})}
}

// OnWrite implements [zapcore.CheckWriteHook]. It does not return.
func (h *fatalHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	h.once.Do(func() {
		h.cause = errors.New(entry.Message)
		for _, field := range fields {
			if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
				h.cause = fmt.Errorf("%s: %w", entry.Message, err)
			}
		}
		close(h.fired)
	})
	runtime.Goexit()
}

// err is nil until the hook has fired.
func (h *fatalHook) err() error {
	select {
	case <-h.fired:
		return h.cause
	default:
		return nil
	}
}
