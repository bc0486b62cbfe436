package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/term"
)

// killAfter is how long a command may take to end after the first signal, or
// after its appliance has ended.
const killAfter = 10 * time.Second

// commandResult is how a command ended.
type commandResult struct {
	err error // nil, or an *exitError with the command's own code

	applianceEnded bool // the appliance ended first
	applianceErr   error
}

// runForwarding runs the command with our own streams and forwards signals to
// it. When the appliance ends first, the command is ended too.
func (p *program) runForwarding(command *exec.Cmd, applianceEnded <-chan error) commandResult {
	command.Stdin, command.Stdout, command.Stderr = p.env.Stdin, p.env.Stdout, p.env.Stderr
	// Behind a terminal ^C reaches the command by itself, which therefore
	// stays in our process group. Elsewhere it gets one of its own, so that
	// what it started gets our signals too.
	stdin, isFile := p.env.Stdin.(*os.File)
	terminal := isFile && term.IsTerminal(int(stdin.Fd()))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: !terminal}
	if err := command.Start(); err != nil {
		return commandResult{err: &exitError{codeCannotRun, fmt.Errorf("starting the command: %w", err)}}
	}
	target := command.Process.Pid
	if !terminal {
		target = -target
	}
	signalled := make(chan struct{}, 1)
	p.signals.forwardTo(func(received os.Signal) {
		if terminal && received == syscall.SIGINT {
			return
		}
		// It may have ended already.
		_ = syscall.Kill(target, received.(syscall.Signal))
		select {
		case signalled <- struct{}{}:
		default:
		}
	})
	defer p.signals.forwardTo(nil)

	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var result commandResult
	var kill <-chan time.Time
	for {
		select {
		case err := <-ended:
			result.err = commandExit(err)
			return result
		case <-signalled:
			kill = time.After(killAfter)
		case <-kill:
			_ = syscall.Kill(target, syscall.SIGKILL)
		case result.applianceErr = <-applianceEnded:
			result.applianceEnded, applianceEnded = true, nil
			_ = syscall.Kill(target, syscall.SIGTERM)
			kill = time.After(killAfter)
		}
	}
}

// commandExit turns the end of a command into our exit code, as shells do:
// 128 plus the number of the signal that ended it.
func commandExit(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return &exitError{codeCannotRun, fmt.Errorf("waiting for the command: %w", err)}
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &exitError{code: codeSignalOffset + int(status.Signal())}
	}
	return &exitError{code: exit.ExitCode()}
}
