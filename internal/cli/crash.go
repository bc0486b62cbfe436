package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/taskctl-dev/taskctl/internal/datadir"
)

// crashFile is where the Go runtime writes a crash of the whole process. It is
// no component's log.
func crashFile(dataDir string) string { return filepath.Join(datadir.Logs(dataDir), "crash.txt") }

// catchCrash makes the Go runtime write a crash to the data folder: the
// background process has no other place for it.
func catchCrash(dataDir string) error {
	file, err := os.OpenFile(crashFile(dataDir), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("preparing the log folder: %w", err)
	}
	// The runtime keeps a copy of the file descriptor.
	return errors.Join(debug.SetCrashOutput(file, debug.CrashOptions{}), file.Close())
}

// crashed names the crash of a process for an error message; "" if it did not
// crash.
func crashed(dataDir string) string {
	line := crashLine(dataDir)
	if line == "" {
		return ""
	}
	return fmt.Sprintf(": %s; the whole crash is in %s", line, crashFile(dataDir))
}

// crashLine is the first line of the newest crash, "" if there was none.
func crashLine(dataDir string) string {
	file, err := os.Open(crashFile(dataDir))
	if err != nil {
		return ""
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	if !lines.Scan() {
		return ""
	}
	return lines.Text()
}
