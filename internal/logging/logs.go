package logging

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
)

// Logs is the folder of log files of one appliance.
type Logs struct {
	dir   string
	level slog.Level

	mu    sync.Mutex
	files map[string]*File
}

// New prepares logs in dir, which exists. verbosity 0 logs what a person who
// looks for a fault needs; each step more is one more level of detail of slog
// and logr (V(1), V(2), …). The caller closes it, after all components.
func New(dir string, verbosity int) *Logs {
	return &Logs{dir: dir, level: slog.Level(-verbosity), files: map[string]*File{}}
}

// Path is the component's log file.
func (l *Logs) Path(component string) string { return path(l.dir, component) }

func path(dir, component string) string { return filepath.Join(dir, component+suffix) }

const suffix = ".log"

// Writer is the component's log. The same component always gets the same one.
func (l *Logs) Writer(component string) *File {
	l.mu.Lock()
	defer l.mu.Unlock()
	file, ok := l.files[component]
	if !ok {
		file = newFile(l.Path(component))
		l.files[component] = file
	}
	return file
}

// Slog is a logger into the component's log.
func (l *Logs) Slog(component string) *slog.Logger { return slog.New(l.handler(component)) }

// Logr is a logger into the component's log, for libraries that take one.
func (l *Logs) Logr(component string) logr.Logger { return logr.FromSlogHandler(l.handler(component)) }

func (l *Logs) handler(component string) slog.Handler {
	return slog.NewTextHandler(io.Writer(l.Writer(component)), &slog.HandlerOptions{
		Level: l.level,
		ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
			if len(groups) == 0 && attr.Key == slog.TimeKey {
				return slog.Attr{} // the file stamps the line
			}
			return attr
		},
	})
}

// Close closes every file.
func (l *Logs) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, file := range l.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
