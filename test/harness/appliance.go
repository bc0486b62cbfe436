package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	startLimit = 2 * time.Minute
	stopLimit  = 30 * time.Second
)

// Appliance is a running `taskctl up`.
type Appliance struct {
	// DataDir is its data folder, Kubeconfig the file with its admin context.
	DataDir, Kubeconfig string

	t       testing.TB
	binary  string
	command *exec.Cmd
	events  *bytes.Buffer // standard output, whole
	stderr  *bytes.Buffer
	exited  chan struct{} // closed when the process has been reaped
	waitErr error         // its Wait error; read after exited is closed
	stop    sync.Once
}

// Start runs `taskctl up --ephemeral` with args in the foreground, waits until
// it says that it is ready, and stops it when the test ends.
func Start(t testing.TB, args ...string) *Appliance {
	t.Helper()
	return StartIn(t, filepath.Join(t.TempDir(), "data"), append([]string{"--ephemeral"}, args...)...)
}

// StartIn is Start on a data folder that is kept, for tests that start an
// appliance again.
func StartIn(t testing.TB, dataDir string, args ...string) *Appliance {
	t.Helper()
	a := &Appliance{
		DataDir:    dataDir,
		Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"),
		t:          t,
		binary:     Binary(t),
		events:     &bytes.Buffer{},
		stderr:     &bytes.Buffer{},
		exited:     make(chan struct{}),
	}
	arguments := append([]string{"up", "-o", "json", "--cluster", "embedded", "--data-dir", dataDir, "--kubeconfig", a.Kubeconfig}, args...)
	a.command = exec.Command(a.binary, arguments...)
	a.command.Stderr = a.stderr
	stdout, err := a.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Stop)

	ready := make(chan struct{})
	go a.follow(bufio.NewScanner(stdout), ready)
	select {
	case <-ready:
	case <-a.exited:
		t.Fatalf("taskctl up ended before it was ready: %v\n%s%s", a.waitErr, a.events, a.stderr)
	case <-time.After(startLimit):
		_ = a.command.Process.Kill()
		<-a.exited
		t.Fatalf("taskctl up was not ready within %s\n%s%s", startLimit, a.events, a.stderr)
	}
	return a
}

// follow reads the process's events, closes ready at the ready event, and
// reaps the process when its output ends.
func (a *Appliance) follow(lines *bufio.Scanner, ready chan<- struct{}) {
	defer close(a.exited)
	seen := false
	for lines.Scan() {
		var event struct {
			Event string `json:"event"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err == nil && event.Event == "ready" && !seen {
			seen = true
			close(ready)
		}
		if !seen {
			a.events.Write(append(lines.Bytes(), '\n'))
		}
	}
	a.waitErr = a.command.Wait()
}

// Stop sends SIGTERM and waits for a clean end; anything else fails the test.
// It may be called more than once.
func (a *Appliance) Stop() {
	a.stop.Do(func() {
		_ = a.command.Process.Signal(syscall.SIGTERM)
		select {
		case <-a.exited:
			if a.waitErr != nil {
				a.t.Errorf("taskctl up did not stop cleanly: %v\n%s", a.waitErr, a.stderr)
			}
		case <-time.After(stopLimit):
			_ = a.command.Process.Signal(syscall.SIGQUIT)
			<-a.exited
			a.t.Errorf("taskctl up did not stop within %s\n%s", stopLimit, a.stderr)
		}
	})
}

// Kill sends SIGKILL and waits until the process is gone.
func (a *Appliance) Kill() {
	a.stop.Do(func() {
		_ = a.command.Process.Kill()
		<-a.exited
	})
}

// PID is the process's id.
func (a *Appliance) PID() int { return a.command.Process.Pid }

// REST is a client configuration of the appliance's administrator.
func (a *Appliance) REST() *rest.Config {
	a.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", a.Kubeconfig)
	if err != nil {
		a.t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// Identity is a client configuration of one of the appliance's own identities,
// for example "operator" or "aggregator".
func (a *Appliance) Identity(name string) *rest.Config {
	a.t.Helper()
	admin := a.REST()
	return &rest.Config{
		Host: admin.Host,
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   admin.CAData,
			CAFile:   admin.CAFile,
			CertFile: filepath.Join(a.DataDir, "pki", name+".crt"),
			KeyFile:  filepath.Join(a.DataDir, "pki", name+".key"),
		},
	}
}

// Result is what a command did.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Kubectl runs the embedded kubectl on this appliance.
func (a *Appliance) Kubectl(ctx context.Context, args ...string) Result {
	a.t.Helper()
	return a.Taskctl(ctx, append([]string{"kubectl"}, args...)...)
}

// Taskctl runs a taskctl command on this appliance.
func (a *Appliance) Taskctl(ctx context.Context, args ...string) Result {
	a.t.Helper()
	command := exec.CommandContext(ctx, a.binary, args...)
	command.Env = append(os.Environ(), "TASKCTL_DATA_DIR="+a.DataDir, "KUBECONFIG="+a.Kubeconfig)
	return Run(a.t, command)
}

// Run runs a command to its end; only one that could not be started at all
// fails the test.
func Run(t testing.TB, command *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", command, err)
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: command.ProcessState.ExitCode()}
}
