package logging

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Last are the last n lines of a log file, not older than since, that are worth
// showing to people, without line feeds; none if there is no file. Stacks stay
// in the file.
func Last(file string, n int, since time.Time) ([]string, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Enough for some lines and a stack of every goroutine before them.
	start := max(0, info.Size()-1<<20)
	content, err := io.ReadAll(io.NewSectionReader(f, start, info.Size()-start))
	if err != nil {
		return nil, err
	}
	content = bytes.TrimRight(content, "\n")
	if len(content) == 0 {
		return nil, nil
	}
	first := stamp(since)
	lines := slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool { return line < first || isStack(line) })
	return lines[max(0, len(lines)-n):], nil
}

// isStack recognises the lines of a goroutine's stack, behind the time that
// each log line begins with.
func isStack(line string) bool {
	_, text, _ := strings.Cut(line, " ")
	return text == "" || strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "goroutine ") ||
		strings.HasPrefix(text, "created by ") || strings.HasPrefix(text, "panic(") ||
		strings.HasSuffix(text, ")") && strings.Contains(text, "(0x") || strings.HasSuffix(text, "(...)") ||
		strings.HasSuffix(text, "()") && !strings.Contains(text, " ")
}
