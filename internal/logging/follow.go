package logging

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"time"
)

// pollInterval is how often followed files are looked at. Reading the size of
// a dozen files five times a second costs nothing measurable, works on every
// file system, and needs no watch that could run out.
const pollInterval = 200 * time.Millisecond

// follow copies new lines until ctx ends, which is not an error. With all it
// finds logs of components that begin later.
func follow(ctx context.Context, dir string, all bool, tails []*tail, w io.Writer) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	opened := tails[:len(tails):len(tails)]
	defer func() {
		for _, t := range opened[len(tails):] {
			t.close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, t := range opened {
			if err := t.copyNew(w); err != nil {
				return err
			}
		}
		if !all {
			continue
		}
		components, err := Components(dir)
		if err != nil {
			return err
		}
		for _, component := range components {
			file := path(dir, component)
			if !slices.ContainsFunc(opened, func(t *tail) bool { return t.path == file }) {
				opened = append(opened, &tail{path: file, prefix: component + " "})
			}
		}
	}
}

// copyNew copies the whole lines that were added, across a rotation too.
func (t *tail) copyNew(w io.Writer) error {
	if t.file != nil {
		if err := t.drain(w); err != nil {
			return err
		}
	}
	named, err := os.Stat(t.path)
	if err != nil {
		return nil // rotated a moment ago, or the folder is gone
	}
	if t.file != nil {
		if opened, err := t.file.Stat(); err == nil && os.SameFile(opened, named) {
			return nil
		}
		if err := t.drain(w); err != nil { // what was written until the rotation
			return err
		}
		t.file.Close()
	}
	if t.file, err = os.Open(t.path); err != nil {
		t.file = nil
		return nil
	}
	return t.drain(w)
}

func (t *tail) drain(w io.Writer) error {
	content, err := io.ReadAll(t.file)
	if err != nil {
		return err
	}
	content = append(t.partial, content...)
	end := bytes.LastIndexByte(content, '\n') + 1
	t.partial = slices.Clone(content[end:])
	for line := range bytes.SplitAfterSeq(content[:end], []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		if _, err := w.Write(append([]byte(t.prefix), line...)); err != nil {
			return err
		}
	}
	return nil
}
