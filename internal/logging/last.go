package logging

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
)

// Last are the last n lines of a log file, without line feeds; none if there
// is no file.
func Last(file string, n int) ([]string, error) {
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
	// Long enough for lines of 4 KiB; longer ones are cut, not worth more.
	start := max(0, info.Size()-int64(n)*4096)
	content, err := io.ReadAll(io.NewSectionReader(f, start, info.Size()-start))
	if err != nil {
		return nil, err
	}
	content = bytes.TrimRight(content, "\n")
	if len(content) == 0 {
		return nil, nil
	}
	lines := strings.Split(string(content), "\n")
	return lines[max(0, len(lines)-n):], nil
}
