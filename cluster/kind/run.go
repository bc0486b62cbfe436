package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// commandError is a command of the engine that failed.
type commandError struct {
	words  []string
	output string // what it wrote, trimmed
	err    error
}

func (e *commandError) Error() string {
	if e.output == "" {
		return fmt.Sprintf("%s: %v", strings.Join(e.words[:min(3, len(e.words))], " "), e.err)
	}
	return lastLine(e.output)
}

func (e *commandError) Unwrap() error { return e.err }

// says tells whether err is a failed command whose output has one of the
// texts, without regard to case.
func says(err error, texts ...string) bool {
	var failed *commandError
	if !errors.As(err, &failed) {
		return false
	}
	output := strings.ToLower(failed.output)
	for _, text := range texts {
		if strings.Contains(output, strings.ToLower(text)) {
			return true
		}
	}
	return false
}

// run executes a command of the engine and returns its standard output. It is
// killed when ctx ends.
func (e *Engine) run(ctx context.Context, words ...string) (string, error) {
	var stdout bytes.Buffer
	err := e.stream(ctx, nil, &stdout, words...)
	return strings.TrimSpace(stdout.String()), err
}

// stream is run with the command's input and output connected.
func (e *Engine) stream(ctx context.Context, stdin io.Reader, stdout io.Writer, words ...string) error {
	command := exec.CommandContext(ctx, e.Name, words...)
	// What a killed client has started may hold its output open.
	command.WaitDelay = 2 * time.Second
	var stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = stdin, stdout, &stderr
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		output := strings.TrimSpace(stderr.String())
		if buffer, ok := stdout.(*bytes.Buffer); ok && output == "" {
			output = strings.TrimSpace(buffer.String())
		}
		return &commandError{words: append([]string{e.Name}, words...), output: output, err: err}
	}
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
