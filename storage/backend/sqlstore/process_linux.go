package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

func describeProcess(pid int) process {
	var p process
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		p.Boot = strings.TrimSpace(string(boot))
	}
	if namespace, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		p.Namespace = namespace
	}
	_, p.Started = readStat(pid)
	return p
}

// processEnded reports whether the process pid that started at the given time
// has certainly ended. The signal is asked first: /proc can hide other users'
// processes.
func processEnded(pid int, started string) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return errors.Is(err, syscall.ESRCH)
	}
	state, now := readStat(pid)
	if state == "Z" || state == "X" {
		return true // it waits only for its parent to read the exit status
	}
	return started != "" && now != "" && started != now // the number was used again
}

// readStat returns the state and the start time of a process, see proc(5);
// empty strings where they cannot be read.
func readStat(pid int) (state, started string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	// The second field is the command in parentheses and can hold anything.
	_, rest, found := strings.Cut(string(text), ") ")
	for found && strings.Contains(rest, ") ") {
		_, rest, found = strings.Cut(rest, ") ")
	}
	fields := strings.Fields(rest)
	const startTime = 22 - 3 // the 22nd field; rest begins with the third
	if len(fields) <= startTime {
		return "", ""
	}
	return fields[0], fields[startTime]
}
