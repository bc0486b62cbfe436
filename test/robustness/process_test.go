package robustness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// program is the path of taskctl, built at most once in a test process.
var program = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("TASKCTL_BIN"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "taskctl-robustness-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "taskctl")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, ".")
	build.Dir = filepath.Join("..", "..")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build taskctl: %w\n%s", err, output)
	}
	return path, nil
})

// process is `taskctl storage serve` over one store.
type process struct {
	t    *testing.T
	args []string
	log  *os.File
	url  string
	cmd  *exec.Cmd
}

// newProcess prepares a process; its port is chosen at the first start and
// kept, so that clients find it again.
func newProcess(t *testing.T, dataDir, spec string) *process {
	t.Helper()
	log, err := os.Create(filepath.Join(dataDir, "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, log: log, url: "http://127.0.0.1:0", args: []string{
		"storage", "serve", "--storage", spec, "--data-dir", dataDir, "--progress-notify-interval", "100ms",
	}}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			content, _ := os.ReadFile(log.Name())
			t.Logf("the server's log ends with:\n%s", content[max(0, len(content)-4000):])
		}
		_ = log.Close()
	})
	return p
}

// start starts the process and waits until it says that it is ready.
func (p *process) start(ctx context.Context) error {
	path, err := program()
	if err != nil {
		return err
	}
	p.cmd = exec.CommandContext(ctx, path, append(p.args, "--listen", p.url)...)
	p.cmd.Stderr = p.log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return errors.Join(fmt.Errorf("the server ended before it was ready: %w", err), p.cmd.Wait())
	}
	p.url = strings.TrimSpace(line)
	go func() { _, _ = io.Copy(io.Discard, stdout) }() // ends with the process
	return nil
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait() // says "killed"
	p.cmd = nil
}

// restart kills the process and starts it again over what it left.
func (p *process) restart(ctx context.Context) error {
	p.kill()
	return p.start(ctx)
}
