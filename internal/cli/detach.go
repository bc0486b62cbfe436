package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// eventsVariable tells the background process the file descriptor on which its
// parent reads events.
const eventsVariable = "TASKCTL_EVENTS_FD"

// inBackground is the pipe to the parent if this is the background process of
// an `up -d`, else nil.
func (p *program) inBackground() (*os.File, error) {
	text := p.env.Getenv(eventsVariable)
	if text == "" {
		return nil, nil
	}
	descriptor, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s is for taskctl itself, and %q is no file descriptor: unset it", eventsVariable, text)
	}
	syscall.CloseOnExec(descriptor)
	file := os.NewFile(uintptr(descriptor), "events")
	if _, err := file.Stat(); err != nil {
		return nil, fmt.Errorf("%s is for taskctl itself, and file descriptor %d is not open: unset it", eventsVariable, descriptor)
	}
	return file, os.Unsetenv(eventsVariable)
}

// upInBackground runs the appliance and tells the parent what happens until it
// is ready.
func (p *program) upInBackground(ctx context.Context, config upConfig, events io.WriteCloser) error {
	p.signals.ignoreHangup()
	var once sync.Once
	encoder := json.NewEncoder(events)
	tell := func(event supervisor.Event) {
		// The parent may have been killed; the appliance goes on.
		_ = encoder.Encode(event)
		switch event.Kind {
		case supervisor.ReadyEvent, supervisor.FailedEvent:
			once.Do(func() { events.Close() })
		}
	}
	// The folder in which it was started may be deleted, or unmounted.
	if err := os.Chdir("/"); err != nil {
		return err
	}
	err := p.runAppliance(ctx, config, tell)
	if err != nil {
		tell(supervisor.Event{Kind: supervisor.FailedEvent, Time: time.Now().UTC(), Reason: oneLine(err)})
		return &exitError{code: exitCode(err)}
	}
	return nil
}

// detach starts the background process and returns when it is ready, or has
// failed.
func (p *program) detach(ctx context.Context, config upConfig) error {
	reporter := p.newReporter(p.printer(config.common), config.common, false)
	defer reporter.out.close()
	path, err := executable()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the background process: %w", err)
	}
	defer read.Close()
	command := exec.Command(path, withoutStorage(p.args)...)
	command.Env = append(os.Environ(), eventsVariable+"=3")
	if config.spec != "" {
		command.Env = append(command.Env, storageVariable+"="+config.spec)
	}
	command.ExtraFiles = []*os.File{write}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = command.Start()
	write.Close()
	if err != nil {
		return fmt.Errorf("starting the background process: %w", err)
	}
	unhook := context.AfterFunc(ctx, func() { _ = command.Process.Signal(syscall.SIGTERM) })
	defer unhook()

	last := relay(read, reporter)
	if last.Kind == supervisor.ReadyEvent {
		return nil
	}
	waitErr := command.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case last.Kind == supervisor.FailedEvent:
		return reporter.blame(last)
	case last.Kind == supervisor.StoppedEvent:
		err = errors.New("it was stopped before it was ready")
	default:
		err = fmt.Errorf("the background process ended before it was ready (%v)%s", waitErr, crashed(config.dataDir))
	}
	return reporter.finish(ctx, err)
}

// withoutStorage are the arguments without --storage, whose password must not
// stand in a second argument list.
func withoutStorage(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		switch name := strings.TrimLeft(args[i], "-"); {
		case !isFlag(args[i]):
			kept = append(kept, args[i])
		case name == "storage":
			i++
		case strings.HasPrefix(name, "storage="):
		default:
			kept = append(kept, args[i])
		}
	}
	return kept
}

// relay reports the background process's events and returns the last one.
func relay(events io.Reader, reporter *reporter) supervisor.Event {
	var last supervisor.Event
	for lines := bufio.NewScanner(events); lines.Scan(); {
		var event supervisor.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue
		}
		last = event
		reporter.event(event)
	}
	return last
}
