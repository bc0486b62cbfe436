package logging

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ReadOptions say which lines Read gives.
type ReadOptions struct {
	// Components whose logs are read; none means all.
	Components []string
	// Since cuts older lines away; the zero time cuts none.
	Since time.Time
	// Follow goes on with new lines until the context ends.
	Follow bool
}

// Components are those that have a log in dir, sorted.
func Components(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), suffix))
	}
	return names, nil
}

// Read writes the lines of a folder of logs to w, in the order of their times.
// With more than one component each line begins with its component's name.
// A component without a log is an error that names those that have one.
func Read(ctx context.Context, dir string, options ReadOptions, w io.Writer) error {
	known, err := Components(dir)
	if err != nil {
		return err
	}
	components := options.Components
	if len(components) == 0 {
		components = known
	}
	var tails []*tail
	for _, component := range components {
		if !slices.Contains(known, component) {
			return fmt.Errorf("there is no log of %q; there are: %s", component, strings.Join(known, ", "))
		}
		t := &tail{path: path(dir, component), since: stamp(options.Since)}
		if len(components) > 1 {
			t.prefix = component + " "
		}
		defer t.close()
		tails = append(tails, t)
	}
	if err := copyOld(ctx, tails, w); err != nil || !options.Follow {
		return err
	}
	return follow(ctx, dir, len(options.Components) == 0, tails, w)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeFormat)
}

// copyOld merges what the files hold now. Each file is in order already.
func copyOld(ctx context.Context, tails []*tail, w io.Writer) error {
	var sources []*source
	for _, t := range tails {
		s, err := t.openAll()
		if err != nil {
			return err
		}
		defer s.close()
		if s.next() {
			sources = append(sources, s)
		}
	}
	out := bufio.NewWriter(w)
	for len(sources) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		first := slices.MinFunc(sources, func(a, b *source) int { return cmp.Compare(a.time(), b.time()) })
		if _, err := out.WriteString(first.prefix + first.line); err != nil {
			return err
		}
		if !first.next() {
			if first.err != nil {
				return first.err
			}
			sources = slices.DeleteFunc(sources, func(s *source) bool { return s == first })
		}
	}
	return out.Flush()
}

// source is the history of one component, from the oldest rotated file on.
type source struct {
	prefix string
	since  string
	files  []*os.File
	reader *bufio.Reader
	line   string
	err    error
}

func (s *source) time() string { return s.line[:min(len(s.line), len(timeFormat))] }

// next reads the next whole line that is not too old.
func (s *source) next() bool {
	for {
		line, err := s.reader.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.err = err
			}
			return false
		}
		s.line = line
		if s.time() >= s.since {
			return true
		}
	}
}

func (s *source) close() {
	for _, file := range s.files {
		file.Close()
	}
}

// tail is one component's current file, read on from where the history ended.
type tail struct {
	path, prefix, since string
	file                *os.File
	partial             []byte
}

// openAll opens the component's files, up to their present size: what comes
// later is the tail's. The current file is opened first, so that a rotation
// in between loses nothing.
func (t *tail) openAll() (*source, error) {
	s := &source{prefix: t.prefix, since: t.since}
	current, err := os.Open(t.path)
	if err != nil {
		return nil, err
	}
	t.file = current
	info, err := current.Stat()
	if err != nil {
		return nil, err
	}
	var readers []io.Reader
	for i := maxOld; i > 0; i-- {
		old, err := os.Open(rotated(t.path, i))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			s.close()
			return nil, err
		}
		if oldInfo, err := old.Stat(); err == nil && os.SameFile(info, oldInfo) {
			old.Close()
			continue
		}
		s.files = append(s.files, old)
		readers = append(readers, old)
	}
	size := endOfLastLine(current, info.Size())
	readers = append(readers, io.NewSectionReader(current, 0, size))
	s.reader = bufio.NewReaderSize(io.MultiReader(readers...), 64<<10)
	_, err = current.Seek(size, io.SeekStart)
	return s, err
}

// endOfLastLine is the offset behind the last line feed before size.
func endOfLastLine(file *os.File, size int64) int64 {
	buffer := make([]byte, 4096)
	for end := size; end > 0; {
		start := max(0, end-int64(len(buffer)))
		n, err := file.ReadAt(buffer[:end-start], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return size
		}
		if i := bytes.LastIndexByte(buffer[:n], '\n'); i >= 0 {
			return start + int64(i) + 1
		}
		end = start
	}
	return 0
}

func (t *tail) close() {
	if t.file != nil {
		t.file.Close()
	}
}
