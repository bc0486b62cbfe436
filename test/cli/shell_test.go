package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/test/harness"
)

// limit is how long a command may take. On a machine of two cores that ran many
// other suites at once, starts of two minutes have been seen.
const limit = 5 * time.Minute

// shell is a user: a home folder and an environment.
type shell struct {
	t      *testing.T
	binary string
	home   string
	env    []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{t: t, binary: harness.Binary(t), home: t.TempDir()}
	temporary := filepath.Join(s.home, "tmp")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	s.env = []string{
		"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + temporary,
		"KUBECONFIG=" + filepath.Join(s.home, "kubeconfig"),
		// On a machine with Docker the default would be a kind cluster.
		"TASKCTL_CLUSTER=embedded",
	}
	t.Cleanup(s.leaveNothing)
	return s
}

// in is the same user in a subtest.
func (s *shell) in(t *testing.T) *shell {
	copied := *s
	copied.t = t
	return &copied
}

// leaveNothing ends what a failed test left running, and fails a test that
// passed and left something.
func (s *shell) leaveNothing() {
	if !s.t.Failed() {
		s.awaitEnds(10 * time.Second)
	}
	for _, pid := range processesOf(s.home) {
		if !s.t.Failed() {
			s.t.Errorf("process %d is left behind: %s", pid, commandLine(pid))
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	eventually(s.t, "the end of all processes", func() bool { return len(processesOf(s.home)) == 0 })
}

// awaitEnds waits for processes that are ending: one has given its folder back,
// for which down waits, a moment before it is gone.
func (s *shell) awaitEnds(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(processesOf(s.home)) > 0 {
		select {
		case <-tick.C:
		case <-timer.C:
			return
		}
	}
}

// state is the data folder of an appliance.
func (s *shell) state(name string) string {
	return filepath.Join(s.home, ".local", "state", "taskctl", name)
}

func (s *shell) kubeconfig() string { return filepath.Join(s.home, "kubeconfig") }

// command prepares a taskctl command. A start may take as long as the tests
// wait, unless it says otherwise: other suites may compile at the same time.
func (s *shell) command(args ...string) *exec.Cmd {
	if len(args) > 0 && (args[0] == "up" || args[0] == "ci") && !slices.Contains(args, "--wait") {
		args = slices.Concat(args[:1], []string{"--wait", limit.String()}, args[1:])
	}
	command := exec.Command(s.binary, args...)
	command.Env, command.Dir = s.env, s.home
	return command
}

// run runs a taskctl command to its end.
func (s *shell) run(args ...string) harness.Result {
	s.t.Helper()
	return s.runCommand(s.command(args...))
}

func (s *shell) runCommand(command *exec.Cmd) harness.Result {
	s.t.Helper()
	timer := time.AfterFunc(limit, func() { _ = command.Process.Signal(syscall.SIGQUIT) })
	defer timer.Stop()
	began := time.Now()
	result := harness.Run(s.t, command)
	s.t.Logf("%s: code %d after %.1f s", strings.Join(command.Args[1:], " "), result.Code, time.Since(began).Seconds())
	return result
}

// must runs a command that has to end with the code.
func (s *shell) must(code int, args ...string) harness.Result {
	s.t.Helper()
	result := s.run(args...)
	if result.Code != code {
		s.t.Fatalf("taskctl %s: code %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), result.Code, code, result.Stdout, result.Stderr)
	}
	return result
}

// fails runs a command that has to end with the code and an error of one line
// with all of the texts in it.
func (s *shell) fails(code int, args []string, texts ...string) {
	s.t.Helper()
	checkError(s.t, s.must(code, args...), texts...)
}

func checkError(t *testing.T, result harness.Result, texts ...string) {
	t.Helper()
	var errors []string
	for line := range strings.Lines(result.Stderr) {
		if strings.HasPrefix(line, "error: ") {
			errors = append(errors, line)
		}
	}
	if len(errors) != 1 {
		t.Fatalf("%d error lines, want one\nstderr: %s", len(errors), result.Stderr)
	}
	for _, text := range texts {
		if !strings.Contains(errors[0], text) {
			t.Errorf("the error does not say %q: %s", text, errors[0])
		}
	}
	if strings.Contains(result.Stderr, "goroutine ") {
		t.Errorf("a stack was shown: %s", result.Stderr)
	}
}

// status is the appliance's status; -o json never fails to print it.
func (s *shell) status(args ...string) status {
	s.t.Helper()
	result := s.run(append([]string{"status", "-o", "json"}, args...)...)
	var parsed status
	if err := json.Unmarshal([]byte(result.Stdout), &parsed); err != nil {
		s.t.Fatalf("status: %v\nstdout: %s\nstderr: %s", err, result.Stdout, result.Stderr)
	}
	parsed.code = result.Code
	return parsed
}

// status has the fields of docs/json.md that the tests look at.
type status struct {
	State      string
	PID        int
	Server     string
	Context    string
	DataDir    string
	RunID      string
	Memory     struct{ ResidentBytes int64 }
	Components []struct {
		Name, State, LastError, LogFile string
		Since                           time.Time
		Restarts                        int
	}

	code int
}

func (s status) port(t *testing.T) string {
	t.Helper()
	server, err := url.Parse(s.Server)
	if err != nil {
		t.Fatal(err)
	}
	return server.Port()
}

// kubectl runs the embedded kubectl, which has to succeed.
func (s *shell) kubectl(args ...string) string {
	s.t.Helper()
	return s.must(0, append([]string{"kubectl"}, args...)...).Stdout
}

// background is a command that runs beside the test.
type background struct {
	*exec.Cmd
	t      *testing.T
	stdout *lockedBuffer // empty if it writes elsewhere
	stderr *lockedBuffer
	exited chan struct{}
}

func (s *shell) start(args ...string) *background {
	s.t.Helper()
	return s.startCommand(s.command(args...))
}

func (s *shell) startCommand(command *exec.Cmd) *background {
	s.t.Helper()
	stdout, stderr := &lockedBuffer{}, &lockedBuffer{}
	b := s.startWith(command, stdout, stderr)
	b.stdout, b.stderr = stdout, stderr
	return b
}

// startWith starts a command that writes to files of the test's own.
func (s *shell) startWith(command *exec.Cmd, stdout, stderr io.Writer) *background {
	s.t.Helper()
	b := &background{Cmd: command, t: s.t, stdout: &lockedBuffer{}, stderr: &lockedBuffer{}, exited: make(chan struct{})}
	command.Stdout, command.Stderr = stdout, stderr
	command.WaitDelay = 5 * time.Second // its children may hold the pipes
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(b.exited)
		_ = command.Wait() // the code is what counts
	}()
	s.t.Cleanup(func() {
		_ = command.Process.Kill()
		<-b.exited
	})
	return b
}

// wait returns the exit code, or fails the test after the limit.
func (b *background) wait(limit time.Duration) int {
	b.t.Helper()
	select {
	case <-b.exited:
	case <-time.After(limit):
		_ = b.Process.Signal(syscall.SIGQUIT)
		<-b.exited
		b.t.Fatalf("%s did not end within %s\nstdout: %s\nstderr: %s", b.Cmd, limit, b.stdout, b.stderr)
	}
	return b.ProcessState.ExitCode()
}

func (b *background) signal(signal syscall.Signal) {
	b.t.Helper()
	if err := b.Process.Signal(signal); err != nil {
		b.t.Fatal(err)
	}
}

// await waits until the command's messages have the text.
func (b *background) await(text string) {
	b.t.Helper()
	eventually(b.t, fmt.Sprintf("%q in the output of %s", text, b.Cmd), func() bool {
		select {
		case <-b.exited:
			if !strings.Contains(b.stdout.String()+b.stderr.String(), text) {
				b.t.Fatalf("%s ended with code %d before it said %q\nstdout: %s\nstderr: %s", b.Cmd, b.ProcessState.ExitCode(), text, b.stdout, b.stderr)
			}
		default:
		}
		return strings.Contains(b.stdout.String()+b.stderr.String(), text)
	})
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("this did not come within %s: %s", limit, what)
		case <-tick.C:
		}
	}
}

// processesOf are the processes whose environment has this home folder.
func processesOf(home string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		var pid int
		if _, err := fmt.Sscanf(entry.Name(), "%d", &pid); err != nil {
			continue
		}
		environment, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && bytes.Contains(environment, []byte("HOME="+home+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func commandLine(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return err.Error()
	}
	return string(bytes.ReplaceAll(bytes.TrimRight(text, "\x00"), []byte{0}, []byte{' '}))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// tree lists what is below a folder.
func tree(t *testing.T, root string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != root {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
