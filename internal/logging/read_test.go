package logging

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// written makes a folder of logs in which each component wrote one line in
// each of the seconds given.
func written(t *testing.T, seconds map[string][]int) string {
	t.Helper()
	dir := t.TempDir()
	for component, when := range seconds {
		file := newFile(path(dir, component))
		for _, second := range when {
			file.now = at(second)
			fmt.Fprintf(file, "second %d\n", second)
		}
		file.Close()
	}
	return dir
}

func read(t *testing.T, dir string, options ReadOptions) []string {
	t.Helper()
	var out bytes.Buffer
	if err := Read(t.Context(), dir, options, &out); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Replace(strings.TrimSpace(line), "2026-01-02T03:04:", "", 1))
	}
	return lines
}

func TestLogsAreMergedByTime(t *testing.T) {
	dir := written(t, map[string][]int{"b": {1, 4}, "a": {2, 3, 5}})
	got := strings.Join(read(t, dir, ReadOptions{}), "\n")
	want := "b 01.000Z second 1\na 02.000Z second 2\na 03.000Z second 3\nb 04.000Z second 4\na 05.000Z second 5"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSinceCutsOldLines(t *testing.T) {
	dir := written(t, map[string][]int{"a": {1, 2, 3}})
	got := read(t, dir, ReadOptions{Components: []string{"a"}, Since: at(2)()})
	if strings.Join(got, "|") != "02.000Z second 2|03.000Z second 3" {
		t.Errorf("%q", got)
	}
}

func TestRotatedFilesAreReadToo(t *testing.T) {
	dir := t.TempDir()
	file := newFile(path(dir, "a"))
	defer file.Close()
	file.max = 100
	for i := range 6 {
		fmt.Fprintf(file, "line %d\n", i)
	}
	got := read(t, dir, ReadOptions{})
	if len(got) < 4 || !strings.HasSuffix(got[len(got)-1], "line 5") {
		t.Errorf("%q", got)
	}
}

func TestUnknownComponentNamesTheKnown(t *testing.T) {
	dir := written(t, map[string][]int{"a": {1}, "b": {1}})
	err := Read(t.Context(), dir, ReadOptions{Components: []string{"c"}}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "a, b") {
		t.Errorf("error %v", err)
	}
}

// buffer is a bytes.Buffer for two goroutines.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) await(t *testing.T, what string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		b.mu.Lock()
		text := b.text.String()
		b.mu.Unlock()
		if strings.Contains(text, what) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%q did not come; what came: %q", what, text)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestFollowAcrossARotationAndANewComponent(t *testing.T) {
	dir := written(t, map[string][]int{"a": {1}})
	file := newFile(path(dir, "a"))
	defer file.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var out buffer
	done := make(chan error, 1)
	go func() { done <- Read(ctx, dir, ReadOptions{Follow: true}, &out) }()
	out.await(t, "second 1\n")

	fmt.Fprintf(file, "a new line\n")
	out.await(t, "a new line\n")
	file.mu.Lock()
	file.max = 1 // the next write rotates
	file.mu.Unlock()
	fmt.Fprintf(file, "after the rotation\n")
	out.await(t, "after the rotation\n")
	if _, err := os.Stat(filepath.Join(dir, "a.log.1")); err != nil {
		t.Fatalf("nothing was rotated: %v", err)
	}

	other := newFile(path(dir, "b"))
	defer other.Close()
	fmt.Fprintf(other, "hello from b\n")
	out.await(t, "hello from b\n")
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the end of following is no error: %v", err)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	for _, line := range []string{"a new line", "after the rotation", "hello from b"} {
		if n := strings.Count(out.text.String(), line); n != 1 {
			t.Errorf("%q came %d times", line, n)
		}
	}
}

func TestLast(t *testing.T) {
	dir := written(t, map[string][]int{"a": {1, 2, 3}})
	lines, err := Last(path(dir, "a"), 2, at(2)())
	if err != nil || len(lines) != 2 || !strings.HasSuffix(lines[1], "second 3") {
		t.Errorf("%q, %v", lines, err)
	}
	if lines, err := Last(path(dir, "a"), 2, at(3)()); err != nil || len(lines) != 1 {
		t.Errorf("%q, %v", lines, err)
	}
	if lines, err := Last(filepath.Join(dir, "nothing.log"), 2, time.Time{}); err != nil || lines != nil {
		t.Errorf("%q, %v", lines, err)
	}
}

func TestStacksAreNotShown(t *testing.T) {
	file := t.TempDir() + "/a.log"
	lines := []string{
		"I1201 10:00:00 the last good line",
		"panic: assignment to entry in nil map",
		"goroutine 12 [running]:",
		"runtime/debug.Stack()",
		"\t/usr/local/go/src/runtime/debug/stack.go:26 +0x5e",
		"panic({0x1234, 0x5678})",
		"example.com/a.(*T).run(0xc0001, {0x1, 0x2})",
		"example.com/a.inlined(...)",
		"created by example.com/a.start in goroutine 1",
		"",
		"E1201 10:00:01 an error (with words in brackets)",
	}
	var text strings.Builder
	for _, line := range lines {
		text.WriteString("2026-12-01T10:00:00.000Z " + line + "\n")
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Last(file, 10, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || !strings.HasSuffix(got[0], "good line") || !strings.HasSuffix(got[1], "nil map") || !strings.HasSuffix(got[2], "brackets)") {
		t.Errorf("%q", got)
	}
}
