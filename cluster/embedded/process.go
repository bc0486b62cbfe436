package embedded

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"sync"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// ExitError is Kubernetes' wish to end the process, for example because a step
// of the API server's start failed for good.
type ExitError struct {
	// Code is the exit code that the process would have had.
	Code int
	// Reason is what was logged about it, without the log line's header. It
	// may be empty.
	Reason string
}

func (e *ExitError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("Kubernetes asked to end the process with code %d; the last lines of its log say why", e.Code)
	}
	return "Kubernetes asked to end the process: " + e.Reason
}

// CaptureProcess takes klog, which belongs to the whole process, in hand: its
// output (of the API server, of client-go in all components, of the etcd
// client's gRPC) goes to log and nothing to stderr, and its fatal errors call
// onExit with an [*ExitError] instead of ending the process. The goroutine that
// hit the error ends; the component that it belongs to can't be relied on any
// more, and is best stopped together with all that need it. onExit may be
// called more than once, from any goroutine, and must not block.
//
// There is one caller: the supervisor, or the test environment. Call it, and
// restore, while no component runs. restore gives klog its defaults back.
func CaptureProcess(log io.Writer, onExit func(error)) (restore func()) {
	fatal := &fatalLine{next: log}
	// Structured messages come through the logger, the others as lines of text.
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(fatal)))
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true), klog.WriteKlogBuffer(func(message []byte) { fatal.Write(message) }))
	restoreEtcdClientLog := captureEtcdClientLog(log)
	exit := klog.OsExit
	klog.OsExit = func(code int) {
		onExit(&ExitError{Code: code, Reason: fatal.reason()})
		runtime.Goexit()
	}
	return func() {
		klog.OsExit = exit
		restoreEtcdClientLog()
		klog.ClearLogger()
	}
}

// fatalLine passes the log on, and keeps the last line of severity fatal. klog
// gives the reason of an exit to the log only.
type fatalLine struct {
	mu   sync.Mutex
	next io.Writer
	last []byte
}

// Write implements [io.Writer]. Each call is one message; they come from
// several goroutines and go on one after another.
func (f *fatalLine) Write(message []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(message) > 0 && message[0] == 'F' {
		line, _, _ := bytes.Cut(message, []byte("\n"))
		if _, text, ok := bytes.Cut(line, []byte("] ")); ok {
			f.last = bytes.Clone(text)
		}
	}
	return f.next.Write(message)
}

func (f *fatalLine) reason() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.last)
}
