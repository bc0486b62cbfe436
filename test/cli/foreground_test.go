package cli

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bare is what an appliance is started with where the test is about processes
// and not about what runs in them.
var bare = []string{"--without", "operator,webhooks,aggregator,registration"}

func TestSignalsInTheForeground(t *testing.T) {
	s := newShell(t)
	for _, test := range []struct {
		name   string
		signal syscall.Signal
		code   int
	}{
		{"^C stops in order and is 130", syscall.SIGINT, 130},
		{"SIGTERM stops in order and is 0", syscall.SIGTERM, 0},
		{"a closed terminal stops in order", syscall.SIGHUP, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := s.in(t)
			up := s.start("up")
			up.await("Press ^C to stop")
			if status := s.status(); status.code != 0 || status.PID != up.Process.Pid {
				t.Errorf("status %+v", status)
			}
			began := time.Now()
			up.signal(test.signal)
			if code := up.wait(limit); code != test.code {
				t.Errorf("code %d, want %d: %s", code, test.code, up.stderr)
			}
			t.Logf("stopped after %s", time.Since(began))
			if !strings.Contains(up.stderr.String(), "stopped after") {
				t.Errorf("stderr %q", up.stderr)
			}
			if _, err := os.Stat(s.kubeconfig()); !os.IsNotExist(err) {
				t.Errorf("the kubeconfig that was made for it is still there: %v", err)
			}
		})
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	s := newShell(t)
	for _, test := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGTERM, 143}, {syscall.SIGINT, 130}} {
		up := s.start(append([]string{"up"}, bare...)...)
		up.await("Press ^C to stop")
		up.signal(test.signal)
		up.await("stopping")
		began := time.Now()
		up.signal(test.signal)
		if code := up.wait(limit); code != test.code {
			t.Errorf("code %d, want %d", code, test.code)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
	}
	// What it left behind, the next start mends.
	s.must(0, append([]string{"up", "-d", "-q"}, bare...)...)
	s.must(0, "down")
}

func TestSignalWhileStarting(t *testing.T) {
	s := newShell(t)
	up := s.start("up")
	up.await("storage is ready")
	up.signal(syscall.SIGTERM)
	if code := up.wait(limit); code != 0 {
		t.Errorf("code %d: %s", code, up.stderr)
	}
	if status := s.status(); status.code != 3 {
		t.Errorf("status %+v", status)
	}
}

func TestEventsAsJSON(t *testing.T) {
	s := newShell(t)
	up := s.start(append([]string{"up", "-o", "json", "--ephemeral"}, bare...)...)
	up.await(`"event":"ready"`)
	up.signal(syscall.SIGTERM)
	if code := up.wait(limit); code != 0 || up.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", code, up.stderr)
	}
	var last struct {
		Event, Server, Kubeconfig, DataDir, Context string
		PID                                         int
	}
	events := 0
	for lines := bufio.NewScanner(strings.NewReader(up.stdout.String())); lines.Scan(); events++ {
		last.Event = ""
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil || last.Event == "" {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
	}
	if last.Event != "ready" || last.PID != up.Process.Pid || last.DataDir != s.state("taskctl") || last.Context != "taskctl" || events < 8 {
		t.Errorf("%d events, the last is %+v", events, last)
	}
}

func TestQuiet(t *testing.T) {
	s := newShell(t)
	if result := s.must(0, append([]string{"up", "-d", "-q"}, bare...)...); result.Stdout+result.Stderr != "" {
		t.Errorf("stdout %q, stderr %q", result.Stdout, result.Stderr)
	}
	if result := s.must(0, "-q", "down"); result.Stdout+result.Stderr != "" {
		t.Errorf("stdout %q, stderr %q", result.Stdout, result.Stderr)
	}
}

func TestEphemeralLeavesNothing(t *testing.T) {
	s := newShell(t)
	up := s.start("up", "--ephemeral")
	up.await("Press ^C to stop")
	s.fails(1, []string{"up", "-d"}, `ephemeral is "true", asked for is "false"`)
	up.signal(syscall.SIGTERM)
	if code := up.wait(limit); code != 0 {
		t.Errorf("code %d: %s", code, up.stderr)
	}
	left := tree(t, s.home)
	if len(left) != 1 { // the temporary folder that newShell made
		t.Errorf("left: %v", left)
	}
}

func TestEphemeralDoesNotDeleteKeptData(t *testing.T) {
	s := newShell(t)
	s.must(0, append([]string{"up", "-d", "-q"}, bare...)...)
	s.must(0, "down", "-q")
	s.fails(1, []string{"up", "--ephemeral"}, "holds data that --ephemeral would delete", "--purge")
}

func TestEphemeralLeavesNothingEvenAtOnce(t *testing.T) {
	s := newShell(t)
	up := s.start(append([]string{"up", "--ephemeral"}, bare...)...)
	up.await("Press ^C to stop")
	up.signal(syscall.SIGTERM)
	up.await("stopping")
	up.signal(syscall.SIGTERM)
	if code := up.wait(limit); code != 143 {
		t.Errorf("code %d: %s", code, up.stderr)
	}
	if left := tree(t, s.home); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestStatusTellsHowTheLastRunEnded(t *testing.T) {
	s := newShell(t)
	up := s.start(append([]string{"up"}, bare...)...)
	up.await("Press ^C to stop")
	up.signal(syscall.SIGKILL)
	<-up.exited
	if out := s.must(3, "status").Stdout; !strings.Contains(out, "Last run:     killed") {
		t.Errorf("%s", out)
	}
	up = s.start(append([]string{"up"}, bare...)...)
	up.await("Press ^C to stop")
	s.must(0, "down")
	if out := s.must(3, "status").Stdout; !strings.Contains(out, "Last run:     stopped") {
		t.Errorf("%s", out)
	}
	s.must(1, append([]string{"up", "-q", "--wait", "10ms"}, bare...)...)
	if out := s.must(3, "status").Stdout; !strings.Contains(out, "Last run:     failed") || !strings.Contains(out, "not ready within its limit of 10ms") {
		t.Errorf("%s", out)
	}
}
