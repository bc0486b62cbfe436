package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// quick are flags for appliances of which the test needs the API server only.
var quick = append([]string{"ci"}, bare...)

func (s *shell) ci(command ...string) []string {
	return append(append([]string{}, quick...), command...)
}

func TestCI(t *testing.T) {
	s := newShell(t)
	if err := os.WriteFile(s.kubeconfig(), []byte(usersKubeconfig), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Run("the command's own code and output", func(t *testing.T) {
		s := s.in(t)
		result := s.must(7, s.ci("--", "sh", "-c", `echo "$USE_EXISTING_CLUSTER $KUBECONFIG"; "$0" kubectl get namespace default -o name; exit 7`, s.binary)...)
		lines := strings.Split(result.Stdout, "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "true "+filepath.Join(s.home, ".local", "state", "taskctl", "ci-")) || lines[1] != "namespace/default" {
			t.Errorf("stdout %q", result.Stdout)
		}
	})
	t.Run("a command that a signal ended", func(t *testing.T) {
		s := s.in(t)
		s.must(137, s.ci("sh", "-c", "kill -9 $$")...)
	})
	t.Run("logs are kept", func(t *testing.T) {
		s := s.in(t)
		kept := filepath.Join(s.home, "kept")
		s.must(1, s.ci("-q", "--keep-logs", kept, "false")...)
		if text := readFile(t, filepath.Join(kept, "supervisor.log")); !strings.Contains(text, "msg=ready") {
			t.Errorf("%q", text)
		}
		if err := os.RemoveAll(kept); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("the appliance fails", func(t *testing.T) {
		s := s.in(t)
		s.fails(125, s.ci("--wait", "1ms", "true"), "not ready within its limit of 1ms")
	})
	t.Run("no such command", func(t *testing.T) {
		s := s.in(t)
		s.fails(127, s.ci("no-such-command"), `there is no command "no-such-command"`)
	})
	t.Run("SIGTERM in the middle", func(t *testing.T) {
		s := s.in(t)
		ci := s.start(s.ci("--", "sh", "-c", "echo running; sleep 1000 & wait")...)
		ci.await("running")
		ci.signal(syscall.SIGTERM)
		if code := ci.wait(limit); code != 143 {
			t.Errorf("code %d: %s", code, ci.stderr)
		}
	})
	t.Run("a command that handles the signal has its own code", func(t *testing.T) {
		s := s.in(t)
		ci := s.start(s.ci("--", "sh", "-c", "trap 'exit 5' INT; echo running; while :; do sleep 0.1; done")...)
		ci.await("running")
		ci.signal(syscall.SIGINT)
		if code := ci.wait(limit); code != 5 {
			t.Errorf("code %d: %s", code, ci.stderr)
		}
	})
	t.Run("SIGTERM while starting", func(t *testing.T) {
		s := s.in(t)
		ci := s.start(s.ci("true")...)
		ci.await("storage is ready")
		ci.signal(syscall.SIGTERM)
		if code := ci.wait(limit); code != 143 {
			t.Errorf("code %d: %s", code, ci.stderr)
		}
	})
	if got := readFile(t, s.kubeconfig()); got != usersKubeconfig {
		t.Errorf("the user's kubeconfig was touched:\n%s", got)
	}
	if left := tree(t, s.home); len(left) > 5 { // tmp, the kubeconfig, .local/state/taskctl
		t.Errorf("left: %v", left)
	}
}

func TestKilledCIIsClearedByTheNext(t *testing.T) {
	s := newShell(t)
	ci := s.start(s.ci("--", "sh", "-c", "echo running; exec sleep 1000")...)
	ci.await("running")
	ci.signal(syscall.SIGKILL)
	<-ci.exited
	for _, pid := range processesOf(s.home) { // the command, which nobody could end
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	root := filepath.Dir(s.state("x"))
	if left := tree(t, root); len(left) == 0 {
		t.Fatal("nothing was left behind: the test tests nothing")
	}
	s.must(0, s.ci("true")...)
	if left := tree(t, s.home); len(left) > 4 {
		t.Errorf("left: %v", left)
	}
}

func TestTenCIsAtOnce(t *testing.T) {
	s := newShell(t)
	var runs []*background
	for i := range 10 {
		runs = append(runs, s.start(s.ci("-q", "--wait", "10m", "--", s.binary, "kubectl", "create", "configmap", fmt.Sprintf("mine-%d", i), "-o", "name")...))
	}
	for i, run := range runs {
		if code := run.wait(4 * limit); code != 0 || run.stdout.String() != fmt.Sprintf("configmap/mine-%d\n", i) {
			t.Errorf("run %d: code %d, stdout %q, stderr %s", i, code, run.stdout, run.stderr)
		}
	}
	if left := tree(t, s.home); len(left) > 4 {
		t.Errorf("left: %v", left)
	}
}

// TestDocumentedWorkflow runs the script of the GitHub Actions example in
// docs/ci.md.
func TestDocumentedWorkflow(t *testing.T) {
	s := newShell(t)
	page := readFile(t, filepath.Join("..", "..", "docs", "ci.md"))
	_, page, found := strings.Cut(page, "      run: |\n")
	if !found {
		t.Fatal("docs/ci.md has no step with a script")
	}
	var script strings.Builder
	for line := range strings.Lines(page) {
		text, inside := strings.CutPrefix(line, "        ")
		if !inside {
			break
		}
		script.WriteString(text)
	}
	command := s.command()
	command.Path, command.Args = "/bin/sh", []string{"sh", "-e", "-c", script.String()}
	command.Env = append(command.Env, "PATH="+filepath.Dir(s.binary)+":"+os.Getenv("PATH"))
	if result := s.runCommand(command); result.Code != 0 {
		t.Errorf("code %d, stderr %s\nscript:\n%s", result.Code, result.Stderr, script.String())
	}
	if text := readFile(t, filepath.Join(s.home, "logs", "supervisor.log")); !strings.Contains(text, "msg=ready") {
		t.Errorf("logs/supervisor.log: %q", text)
	}
}
