package cli

import (
	"strconv"
	"strings"
	"testing"

	"github.com/taskctl-dev/taskctl/test/harness"
)

func TestTwoUpsAtOnce(t *testing.T) {
	s := newShell(t)
	args := append([]string{"up", "-d"}, bare...)
	first, second := s.start(args...), s.start(args...)
	codes := []int{first.wait(limit), second.wait(limit)}
	status := s.status()
	if status.code != 0 {
		t.Fatalf("status %+v\n%s\n%s", status, first.stderr, second.stderr)
	}
	if codes[0] != 0 && codes[1] != 0 {
		t.Fatalf("codes %v\n%s\n%s", codes, first.stderr, second.stderr)
	}
	for i, up := range []*background{first, second} {
		if codes[i] == 0 {
			continue
		}
		result := harness.Result{Stderr: up.stderr.String(), Code: codes[i]}
		if result.Code != 1 {
			t.Errorf("code %d", result.Code)
		}
		checkError(t, result, "is in use by process "+strconv.Itoa(status.PID))
	}
	s.must(0, "down")
}

func TestUpAgainstDown(t *testing.T) {
	s := newShell(t)
	args := append([]string{"up", "-d"}, bare...)
	for range 2 {
		s.must(0, args...)
		down := s.start("down")
		up := s.start(args...)
		if code := down.wait(limit); code != 0 {
			t.Errorf("down: code %d: %s", code, down.stderr)
		}
		// It met the old one before the stop began, while it stopped, or
		// after it: success in each case, in the first of the old one.
		if code := up.wait(limit); code != 0 {
			t.Errorf("up: code %d: %s", code, up.stderr)
		}
		s.must(0, "down")
		if status := s.status(); status.code != 3 {
			t.Errorf("status after down: %+v", status)
		}
	}
}

func TestDownWhileStarting(t *testing.T) {
	s := newShell(t)
	up := s.start("up")
	up.await("storage is ready")
	s.must(0, "down")
	if code := up.wait(limit); code != 0 {
		t.Errorf("code %d: %s", code, up.stderr)
	}
}

func TestSeveralSideBySide(t *testing.T) {
	s := newShell(t)
	s.must(0, append([]string{"up", "-d", "-q"}, bare...)...)
	s.must(0, append([]string{"up", "-d", "-q", "--name", "two"}, bare...)...)
	one, two := s.status(), s.status("--name", "two")
	if one.code != 0 || two.code != 0 || one.Server == two.Server || one.PID == two.PID || two.Context != "taskctl-two" {
		t.Fatalf("%+v\n%+v", one, two)
	}
	s.kubectl("create", "configmap", "in-one")
	if out := s.must(0, "--name", "two", "kubectl", "get", "configmaps", "-o", "name").Stdout; strings.Contains(out, "in-one") {
		t.Errorf("%q", out)
	}
	kubeconfig := readFile(t, s.kubeconfig())
	if !strings.Contains(kubeconfig, "current-context: taskctl-two") || !strings.Contains(kubeconfig, one.Server) {
		t.Errorf("kubeconfig:\n%s", kubeconfig)
	}
	list := s.must(0, "list").Stdout
	if !strings.Contains(list, one.Server) || !strings.Contains(list, two.Server) {
		t.Errorf("%q", list)
	}
	// The one that started first goes first: the other's context stays current.
	s.must(0, "down")
	if kubeconfig := readFile(t, s.kubeconfig()); !strings.Contains(kubeconfig, "current-context: taskctl-two") || strings.Contains(kubeconfig, "name: taskctl\n") {
		t.Errorf("kubeconfig:\n%s", kubeconfig)
	}
	command := s.command("down")
	command.Env = append(command.Env, "TASKCTL_NAME=two")
	if result := s.runCommand(command); result.Code != 0 {
		t.Errorf("code %d: %s", result.Code, result.Stderr)
	}
}
