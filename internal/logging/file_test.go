package logging

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is a clock that stands still.
func at(second int) func() time.Time {
	return func() time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEachLineBeginsWithItsTime(t *testing.T) {
	file := newFile(filepath.Join(t.TempDir(), "a.log"))
	defer file.Close()
	file.now = at(5)
	for _, part := range []string{"one\ntwo\n", "three, ", "in two parts\n", "", "\n"} {
		if n, err := file.Write([]byte(part)); err != nil || n != len(part) {
			t.Fatalf("%d, %v", n, err)
		}
	}
	const prefix = "2026-01-02T03:04:05.000Z "
	want := prefix + "one\n" + prefix + "two\n" + prefix + "three, in two parts\n" + prefix + "\n"
	if got := content(t, file.path); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestFileIsBoundedByRotation(t *testing.T) {
	dir := t.TempDir()
	file := newFile(filepath.Join(dir, "a.log"))
	defer file.Close()
	file.max = 1000
	for i := range 200 {
		if _, err := fmt.Fprintf(file, "line %03d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1+maxOld {
		t.Errorf("files: %v", entries)
	}
	var all strings.Builder
	for i := maxOld; i >= 0; i-- {
		text := content(t, rotated(file.path, i))
		if len(text) > 1100 {
			t.Errorf("file %d has %d bytes", i, len(text))
		}
		all.WriteString(text)
	}
	if !strings.HasSuffix(all.String(), "line 199\n") {
		t.Errorf("the newest line is not the last one")
	}
	lines := strings.Split(strings.TrimSpace(all.String()), "\n")
	for i, line := range lines {
		if want := fmt.Sprintf("line %03d", 200-len(lines)+i); !strings.HasSuffix(line, want) {
			t.Fatalf("line %d is %q, want %q: one was lost", i, line, want)
		}
	}
}

func TestReopenedFileIsContinued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	for _, line := range []string{"first run\n", "second run\n"} {
		file := newFile(path)
		if _, err := file.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	if text := content(t, path); strings.Count(text, "run\n") != 2 {
		t.Errorf("%q", text)
	}
}

func TestConcurrentWritesKeepLinesWhole(t *testing.T) {
	file := newFile(filepath.Join(t.TempDir(), "a.log"))
	file.max = 4000
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 100 {
				fmt.Fprintf(file, "writer %d wrote this whole line\n", i)
			}
		})
	}
	writers.Wait()
	file.Close()
	for line := range strings.Lines(content(t, file.path)) {
		if !strings.HasSuffix(line, "wrote this whole line\n") {
			t.Fatalf("a broken line: %q", line)
		}
	}
	if _, err := file.Write([]byte("late\n")); err == nil {
		t.Error("a closed file took a line")
	}
}

func TestVerbosityOfLoggers(t *testing.T) {
	logs := New(t.TempDir(), 1)
	log := logs.Logr("operator")
	log.Info("shown")
	log.V(1).Info("shown too")
	log.V(2).Info("hidden")
	logs.Slog("operator").Debug("hidden")
	if err := logs.Close(); err != nil {
		t.Fatal(err)
	}
	text := content(t, logs.Path("operator"))
	if strings.Count(text, "shown") != 2 || strings.Contains(text, "hidden") || strings.Contains(text, "time=") {
		t.Errorf("%q", text)
	}
}
