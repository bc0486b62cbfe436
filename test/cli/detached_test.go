package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// backgroundProcess is the process of an `up -d` that has not returned yet.
func (s *shell) backgroundProcess(parent *background) int {
	s.t.Helper()
	var found int
	eventually(s.t, "a background process", func() bool {
		for _, pid := range processesOf(s.home) {
			if pid != parent.Process.Pid {
				found = pid
				return true
			}
		}
		return false
	})
	return found
}

// TestDetachedStartThatIsInterrupted: whoever interrupts `up -d` does not want
// the appliance any more; whoever kills it can't say so.
func TestDetachedStartThatIsInterrupted(t *testing.T) {
	s := newShell(t)
	args := append([]string{"up", "-d"}, bare...)
	for _, test := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		up := s.start(args...)
		up.await("storage is ready")
		up.signal(test.signal)
		if code := up.wait(limit); code != test.code {
			t.Errorf("%s: code %d, want %d: %s", test.signal, code, test.code, up.stderr)
		}
		if status := s.status(); status.code != 3 {
			t.Errorf("%s: status %+v", test.signal, status)
		}
		if left := processesOf(s.home); len(left) != 0 {
			t.Errorf("%s: still there: %v", test.signal, left)
		}
	}

	up := s.start(args...)
	up.await("storage is ready")
	pid := s.backgroundProcess(up)
	up.signal(syscall.SIGKILL)
	<-up.exited
	eventually(t, "ready", func() bool { return s.status().code == 0 })
	if now := s.status(); now.PID != pid {
		t.Errorf("process %d, want %d", now.PID, pid)
	}
	s.must(0, "down")
}

func TestSignalsInTheBackground(t *testing.T) {
	s := newShell(t)
	args := append([]string{"up", "-d", "-q"}, bare...)
	s.must(0, args...)
	first := s.status()
	// It has no terminal that could be closed.
	if err := syscall.Kill(first.PID, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.kubectl("create", "configmap", "after-the-hangup")
	if now := s.status(); now.code != 0 || now.PID != first.PID {
		t.Errorf("after SIGHUP: %+v", now)
	}
	if err := syscall.Kill(first.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the process", func() bool { return len(processesOf(s.home)) == 0 })
	if out := s.must(3, "status").Stdout; !strings.Contains(out, "Last run:     stopped") {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(s.kubeconfig()); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig that was made for it is still there: %v", err)
	}
}

func TestTwoDownsAtOnce(t *testing.T) {
	s := newShell(t)
	s.must(0, append([]string{"up", "-d", "-q"}, bare...)...)
	downs := []*background{s.start("down"), s.start("down"), s.start("down", "--purge")}
	for _, down := range downs {
		if code := down.wait(limit); code != 0 {
			t.Errorf("%s: code %d: %s", down.Cmd, code, down.stderr)
		}
	}
	if _, err := os.Stat(s.state("taskctl")); !os.IsNotExist(err) {
		t.Errorf("after --purge the folder is there: %v", err)
	}
}

func TestBackgroundProcessEndsWithItsFolder(t *testing.T) {
	s := newShell(t)
	s.must(0, append([]string{"up", "-d", "-q"}, bare...)...)
	deleteUnderWay(t, s.state("taskctl"))
	eventually(t, "the end of the process", func() bool { return len(processesOf(s.home)) == 0 })
	if left := tree(t, filepath.Dir(s.state("taskctl"))); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	s.must(0, "down")
}

// TestSocketsThatWereTaken deletes the sockets, as cleaners of /tmp do after
// some days.
func TestSocketsThatWereTaken(t *testing.T) {
	s := newShell(t)
	s.must(0, append([]string{"up", "-d", "-q"}, bare...)...)
	for _, socket := range tree(t, filepath.Join(s.state("taskctl"), "run")) {
		if err := os.Remove(socket); err != nil {
			t.Fatal(err)
		}
	}
	s.kubectl("create", "configmap", "stored-without-sockets")
	if out := s.must(0, "logs", "supervisor").Stdout; !strings.Contains(out, "msg=ready") {
		t.Errorf("logs: %q", out)
	}
	s.must(0, "down")
	if out := s.must(3, "status").Stdout; !strings.Contains(out, "Last run:     stopped") {
		t.Errorf("%s", out)
	}
}
