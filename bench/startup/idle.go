package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	settle         = 10 * time.Second // start-up work that goes on after ready
	ticksPerSecond = 100              // USER_HZ, fixed on Linux
)

// idle returns the share of a core in percent over d, and the resident memory
// in megabytes at its end.
func (a *appliance) idle(d time.Duration) (share, megabytes float64, err error) {
	time.Sleep(settle)
	before, err := a.cpuSeconds()
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(d)
	after, err := a.cpuSeconds()
	if err != nil {
		return 0, 0, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", a.command.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(status))[1], 64)
	return (after - before) / d.Seconds() * 100, pages * float64(os.Getpagesize()) / 1e6, err
}

// cpuSeconds is the process's user and system time so far: fields 14 and 15
// of proc(5)'s stat, counted behind the command name in parentheses.
func (a *appliance) cpuSeconds() (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksPerSecond, err
}
