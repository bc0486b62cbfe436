package kind

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/log"
)

// logger is kind's logger: everything goes into a log, and the names of its
// steps to progress as well.
type logger struct {
	mu       sync.Mutex
	out      io.Writer
	progress func(string)
}

var _ log.Logger = &logger{}

func (l *logger) write(level, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%s %s\n", level, strings.TrimSpace(message))
	// Steps begin like " • Preparing nodes 📦  ..."; see kind's internal/cli.
	if step, ok := strings.CutPrefix(strings.TrimSpace(message), "• "); ok {
		step = strings.TrimRightFunc(strings.TrimSuffix(strings.TrimSpace(step), "..."), func(r rune) bool { return r > 0x2000 || r == ' ' })
		l.progress("node: " + strings.ToLower(step[:1]) + step[1:])
	}
}

func (l *logger) Warn(message string)               { l.write("W", message) }
func (l *logger) Warnf(format string, args ...any)  { l.write("W", fmt.Sprintf(format, args...)) }
func (l *logger) Error(message string)              { l.write("E", message) }
func (l *logger) Errorf(format string, args ...any) { l.write("E", fmt.Sprintf(format, args...)) }
func (l *logger) V(log.Level) log.InfoLogger        { return infoLogger{l} }

type infoLogger struct{ *logger }

func (l infoLogger) Info(message string)              { l.write("I", message) }
func (l infoLogger) Infof(format string, args ...any) { l.write("I", fmt.Sprintf(format, args...)) }
func (infoLogger) Enabled() bool                      { return true }
