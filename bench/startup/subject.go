package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const watches = 20 // foreign watches open while an appliance is stopped

// subject is one way to run the binary.
type subject struct {
	name    string
	without string // components left out
}

// measure starts the subject in a new folder, watches it idle, stops it with
// foreign watches open, and starts and stops it once more.
func (s subject) measure(ctx context.Context, binary string, idle time.Duration) ([]measurement, error) {
	dir, err := os.MkdirTemp("", "taskctl-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var results []measurement
	for _, start := range []string{"first", "second"} {
		a, took, err := s.up(ctx, binary, dir)
		if err != nil {
			return nil, fmt.Errorf("%s start: %w", start, err)
		}
		results = append(results, measurement{start + " start", "s", took.Seconds()})
		if start == "first" && idle > 0 {
			share, memory, err := a.idle(idle)
			if err != nil {
				return nil, err
			}
			results = append(results, measurement{"idle", "% of a core", share}, measurement{"resident memory", "MB", memory})
		}
		if start == "second" {
			stopWatching, err := watchForeign(ctx, binary, dir)
			if err != nil {
				return nil, fmt.Errorf("open watches: %w", err)
			}
			defer stopWatching()
		}
		took, err = a.down()
		if err != nil {
			return nil, fmt.Errorf("%s stop: %w", start, err)
		}
		name := "stop"
		if start == "second" {
			name = fmt.Sprintf("stop with %d watches open", watches)
		}
		results = append(results, measurement{name, "s", took.Seconds()})
	}
	return results, nil
}

type appliance struct {
	command *exec.Cmd
	output  io.Reader
}

// up returns once the process has said that it is ready.
func (s subject) up(ctx context.Context, binary, dir string) (*appliance, time.Duration, error) {
	args := []string{"up", "-o", "json", "--cluster", "embedded",
		"--data-dir", filepath.Join(dir, "data"), "--kubeconfig", filepath.Join(dir, "kubeconfig")}
	if s.without != "" {
		args = append(args, "--without", s.without)
	}
	command := exec.CommandContext(ctx, binary, args...)
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	var complaints strings.Builder
	command.Stderr = &complaints
	begin := time.Now()
	if err := command.Start(); err != nil {
		return nil, 0, err
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var event struct {
			Event string `json:"event"`
		}
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Event == "ready" {
			return &appliance{command: command, output: stdout}, time.Since(begin), nil
		}
	}
	err = command.Wait()
	return nil, 0, fmt.Errorf("ended before it was ready: %v: %s", err, complaints.String())
}

func (a *appliance) down() (time.Duration, error) {
	begin := time.Now()
	if err := a.command.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	if _, err := io.Copy(io.Discard, a.output); err != nil {
		return 0, err
	}
	err := a.command.Wait()
	return time.Since(begin), err
}
