package logging

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	maxSize = 10 << 20 // bytes of one file before it is rotated
	maxOld  = 2        // rotated files that are kept: NAME.log.1 and NAME.log.2
)

// timeFormat begins every line; lines of one file sort by it as text.
const timeFormat = "2006-01-02T15:04:05.000Z"

// File is a component's log: an io.Writer that stamps each line and rotates
// the file. It is safe for concurrent use; a Write should be whole lines.
type File struct {
	path string
	max  int64
	now  func() time.Time

	mu      sync.Mutex
	file    *os.File // nil when closed, or when it could not be opened
	size    int64
	midLine bool // the last write did not end a line
	closed  bool
}

func newFile(path string) *File {
	return &File{path: path, max: maxSize, now: time.Now}
}

// Write adds lines. An error (a full disk) loses them; loggers ignore it, and
// no component fails because of its log.
func (f *File) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, os.ErrClosed
	}
	if err := f.prepare(); err != nil {
		return 0, err
	}
	n, err := f.file.Write(f.stamp(p))
	f.size += int64(n)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// stamp puts the time before each line that begins in p.
func (f *File) stamp(p []byte) []byte {
	prefix := f.now().UTC().Format(timeFormat) + " "
	out := make([]byte, 0, len(p)+len(prefix)*(1+bytes.Count(p, []byte{'\n'})))
	for line := range bytes.SplitAfterSeq(p, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		if !f.midLine {
			out = append(out, prefix...)
		}
		out = append(out, line...)
		f.midLine = line[len(line)-1] != '\n'
	}
	return out
}

// prepare opens the file and rotates a full one, at the end of a line.
func (f *File) prepare() error {
	if f.file != nil && f.size >= f.max && !f.midLine {
		f.file.Close()
		f.file = nil
		for i := maxOld; i > 0; i-- {
			if err := os.Rename(rotated(f.path, i-1), rotated(f.path, i)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	if f.file != nil {
		return nil
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	f.file, f.size, f.midLine = file, info.Size(), false
	return nil
}

// rotated is the name of the i-th older file; 0 is the current one.
func rotated(path string, i int) string {
	if i == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, i)
}

// Close closes the file; later writes fail.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}
