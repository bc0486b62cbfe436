package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// measureMemory fills each contender with keys, starts it again, and prints how
// long that took and its anonymous resident memory: most of etcd's resident
// memory is its mapped file.
func measureMemory(ctx context.Context, s settings, contenders []contender) error {
	s.keys = s.memory
	fmt.Printf("| at %d keys of %d bytes | fill (keys/s) | anonymous (MB) | mapped files (MB) | start (s) | then anonymous (MB) | mapped (MB) |\n|---|---|---|---|---|---|---|\n", s.keys, valueSize)
	for _, c := range contenders {
		server, err := start(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		line, err := memoryOf(ctx, s, server)
		if err := errors.Join(err, server.stop()); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Printf("| %s | %s |\n", c.name, line)
	}
	return nil
}

func memoryOf(ctx context.Context, s settings, server *server) (string, error) {
	rate, err := fill(ctx, s, server)
	if err != nil {
		return "", err
	}
	filled, err := settled(server)
	if err != nil {
		return "", err
	}
	server.end()
	began := time.Now()
	if err := server.run(ctx); err != nil {
		return "", err
	}
	took := time.Since(began)
	started, err := settled(server)
	return fmt.Sprintf("%.0f | %s | %.1f | %s", rate, filled, took.Seconds(), started), err
}

// settled is the resident memory once what was under way in the background has
// ended.
func settled(server *server) (string, error) {
	time.Sleep(5 * time.Second)
	anonymous, mapped, err := residentMemory(server.cmd.Process.Pid)
	return fmt.Sprintf("%.0f | %.0f", anonymous, mapped), err
}

func fill(ctx context.Context, s settings, server *server) (float64, error) {
	b, done, err := newBench(s, server)
	if err != nil {
		return 0, err
	}
	defer done()
	return b.eachKey(b.create)(ctx)
}

// residentMemory reads RssAnon and RssFile of a process, in MB.
func residentMemory(pid int) (anonymous, mapped float64, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.SplitSeq(string(content), "\n") {
		name, rest, _ := strings.Cut(line, ":")
		var into *float64
		switch name {
		case "RssAnon":
			into = &anonymous
		case "RssFile":
			into = &mapped
		default:
			continue
		}
		kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read %q: %w", line, err)
		}
		*into = kilobytes / 1024
	}
	return anonymous, mapped, nil
}

// processorTime is what a process has used of the processors; 0 when it is gone.
func processorTime(pid int) time.Duration {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// Fields are counted behind the name, which may hold anything: utime and
	// stime are the 14th and 15th of the line, in hundredths of a second.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
