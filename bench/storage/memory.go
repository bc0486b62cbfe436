package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// measureMemory fills each contender with keys and prints its anonymous
// resident memory: most of etcd's resident memory is its mapped file.
func measureMemory(ctx context.Context, s settings, contenders []contender) error {
	s.keys = s.memory
	fmt.Printf("| at %d keys of %d bytes | anonymous (MB) | mapped files (MB) | fill (keys/s) |\n|---|---|---|---|\n", s.keys, valueSize)
	for _, c := range contenders {
		server, err := start(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rate, err := fill(ctx, s, server)
		if err == nil {
			time.Sleep(5 * time.Second) // what was under way in the background ends
			var anonymous, mapped float64
			if anonymous, mapped, err = residentMemory(server.cmd.Process.Pid); err == nil {
				fmt.Printf("| %s | %.0f | %.0f | %.0f |\n", c.name, anonymous, mapped, rate)
			}
		}
		if err := errors.Join(err, server.stop()); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func fill(ctx context.Context, s settings, server *server) (float64, error) {
	b := &bench{settings: s, revisions: make([]atomic.Int64, s.keys)}
	for range s.clients {
		client, err := server.connect()
		if err != nil {
			return 0, err
		}
		defer client.Close()
		b.clients = append(b.clients, client)
	}
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
